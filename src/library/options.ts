// Checks the arguments of a program, because types are checked in TypeScript only. Without these checks, a misspelling such as `polices`
// would make a gate without policy. Faults have the same form as faults of the configuration.

import { InvalidInputError, type Fault } from '../core/errors.ts'
import {
  describeValue,
  formatPath,
  isMapping,
  listWords,
  suggestion,
} from '../documents/source-document.ts'
import type { SourceEdit } from '../sources/source-edit.ts'
import type { EndpointSpec, FlowOptions, GateChange, GateOptions } from './gate.ts'

const OPTIONS = ['config', 'policies', 'endpoints', 'log'] as const
const CHANGE = ['policies', 'endpoints', 'removePolicies', 'removeEndpoints'] as const
const FLOWS = ['only', 'endpoint', 'kept', 'bound'] as const

/** Throws InvalidInputError for options that `createGate` does not have. */
export function checkOptions(options: GateOptions): void {
  const check = new Check('options')
  check.keys(options, OPTIONS)
  const { log } = options
  if (log !== undefined && typeof log !== 'function') check.expected(['log'], log, 'a function')
  check.end()
}

/** Throws InvalidInputError for options that a reader of flows does not have, and for values that it cannot use. */
export function checkFlowOptions(
  options: FlowOptions,
  filters: readonly string[],
  max: number,
): void {
  const check = new Check('flows')
  check.keys(options, FLOWS)
  const { only, bound } = options
  if (only !== undefined && !filters.includes(only))
    check.expected(['only'], only, listWords(filters))
  const isBound = bound === undefined || (Number.isInteger(bound) && bound >= 1 && bound <= max)
  if (!isBound) check.expected(['bound'], bound, `a whole number from 1 to ${max}`)
  check.end()
}

/** Returns the change in the form that the daemon's sources take. Throws InvalidInputError with all faults of the change. */
export function toEdit(change: GateChange): SourceEdit {
  const check = new Check('change')
  check.keys(change, CHANGE)
  const policies = new Map<string, unknown>()
  const endpoints = new Map<string, unknown>()
  for (const name of check.names(change.removePolicies, 'removePolicies'))
    policies.set(name, undefined)
  for (const name of check.names(change.removeEndpoints, 'removeEndpoints')) {
    endpoints.set(name, undefined)
  }
  const given: unknown = change.policies ?? {}
  if (!isMapping(given)) check.expected(['policies'], given, 'policies by name')
  // A policy that is `undefined` is a mistake of the program, not a removal.
  else for (const [name, policy] of Object.entries(given)) policies.set(name, policy ?? null)
  for (const [i, endpoint] of check.list(change.endpoints, 'endpoints').entries()) {
    const name = nameOf(endpoint) ?? `${i}`
    if (endpoints.get(name) !== undefined)
      check.fault(`endpoints[${i}]: found the name ${name} twice`)
    endpoints.set(name, endpoint ?? null)
  }
  check.end()
  return { policies, endpoints }
}

function nameOf(endpoint: unknown): EndpointSpec['name'] | undefined {
  const name = isMapping(endpoint) ? endpoint['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

/** Collects the faults of one argument. */
class Check {
  readonly #faults: Fault[] = []
  readonly #what: string

  constructor(what: string) {
    this.#what = what
  }

  fault(message: string): void {
    this.#faults.push({ position: { file: this.#what, line: 0, column: 0 }, message })
  }

  expected(path: readonly string[], found: unknown, expected: string): void {
    this.fault(`${formatPath(path)}: found ${describeValue(found)}, expected ${expected}`)
  }

  keys(value: object, known: readonly string[]): void {
    for (const key of Object.keys(value)) {
      if (known.includes(key)) continue
      const hint = suggestion(key, known) || `, expected ${listWords(known)}`
      this.fault(`unknown key ${key}${hint}`)
    }
  }

  list(value: unknown, key: string): readonly unknown[] {
    if (value === undefined) return []
    if (Array.isArray(value)) return value
    this.expected([key], value, 'a list')
    return []
  }

  names(value: unknown, key: string): readonly string[] {
    return this.list(value, key).flatMap((each) => {
      if (typeof each === 'string') return [each]
      this.expected([key], each, 'a name')
      return []
    })
  }

  end(): void {
    if (this.#faults.length > 0) throw new InvalidInputError(this.#faults)
  }
}
