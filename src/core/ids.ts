// Numbers that name things. Each is a brand, so that an endpoint's number cannot be given where an
// identity is wanted. The functions here are the only places that cast.

import type { Brand } from './brand.ts'

/** An endpoint in this node's kernel maps; 1..2^31-1, never reused while a kernel entry carries it. */
export type EndpointId = Brand<number, 'EndpointId'>
/** One life of an endpoint's hook or addresses; 1..2^31-1. Connections of another generation are not its own. */
export type Generation = Brand<number, 'Generation'>
/** A numeric identity: reserved ones below 256, local ones from 2^24 to 2^25-1 (Cilium's local scope). */
export type Identity = Brand<number, 'Identity'>
/** A selector in the selector table; dense from 0. */
export type SelectorId = Brand<number, 'SelectorId'>
/** What a kernel policy entry came from: an index into the compiled rule origins; 0 = a default. */
export type RuleId = Brand<number, 'RuleId'>
/** Grows with every change of desired datapath state. */
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
