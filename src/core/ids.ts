// Defines the numbers that name things. Each kind of number is a brand, so that the compiler refuses an endpoint's number where an identity
// is wanted. Only the functions in this file cast to these brands.

import type { Brand } from './brand.ts'

/** An endpoint in this node's kernel maps, from 1 to 2^31-1. Never reused while a kernel entry has it. */
export type EndpointId = Brand<number, 'EndpointId'>
/** The life of an endpoint at one place, from 1 to 2^31-1. Connections of another generation do not belong to the endpoint. */
export type Generation = Brand<number, 'Generation'>
/** The number of an identity. Reserved numbers are below 256, local ones are from 2^24 to 2^25-1 (Cilium's local scope). */
export type Identity = Brand<number, 'Identity'>
/** The number of a selector in the selector table. Numbers are dense and begin at 0. */
export type SelectorId = Brand<number, 'SelectorId'>
/** The number of the set of rules that made a kernel policy entry: an index into the compiled rule origins. 0: a default. */
export type RuleId = Brand<number, 'RuleId'>
/** A counter that grows with every change of the desired state of the datapath. */
export type Revision = Brand<number, 'Revision'>

export function endpointId(n: number): EndpointId {
  return n as EndpointId
}

export function generation(n: number): Generation {
  return n as Generation
}

export function identity(n: number): Identity {
  return n as Identity
}

export function selectorId(n: number): SelectorId {
  return n as SelectorId
}

export function ruleId(n: number): RuleId {
  return n as RuleId
}

export function revision(n: number): Revision {
  return n as Revision
}
