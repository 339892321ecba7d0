// The parts from which the JSON Schema of policies is made. An object gets its keys from the table of the reader that reads it, so the schema
// and the reader know the same fields.

import type { FieldTable } from '../../documents/source-document.ts'

export type Schema = Readonly<Record<string, unknown>>

export const NOTHING: Schema = { type: 'null' }

export const TEXT: Schema = { type: 'string' }
export const ANY: Schema = {}

export function ref(name: string): Schema {
  return { $ref: `#/$defs/${name}` }
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items }
}

export function texts(values: Iterable<string>): Schema {
  return { type: 'string', enum: [...values] }
}

export function matching(form: RegExp, more: Schema = {}): Schema {
  return { type: 'string', pattern: form.source, ...more }
}

/** The schema for an object in which these keys are present. A list is not empty. */
export function having(...keys: readonly string[]): Schema {
  const filled = { minItems: 1, not: NOTHING }
  return { required: keys, properties: Object.fromEntries(keys.map((key) => [key, filled])) }
}

/** The schema that holds where a condition is fulfilled, and otherwise another. */
export function when(condition: Schema, holds: Schema, otherwise: Schema = ANY): Schema {
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  return { if: condition, then: holds, else: otherwise }
}

export interface ObjectOptions {
  /** True if a key without a value is refused. Elsewhere the readers treat such a key as absent. */
  readonly refusesNull?: boolean
  /** Further schemas that the mapping must fit. */
  readonly also?: readonly Schema[]
}

/**
 * Makes the schema of a mapping. `values` has the schema of each known field. A field that namegate refuses stays in the schema without a
 * possible value, so that an editor shows the reason. Throws if `values` and the table have different fields, which is a bug.
 */
export function objectOf(
  table: FieldTable,
  values: Readonly<Record<string, Schema>>,
  { refusesNull = false, also = [] }: ObjectOptions = {},
): Schema {
  const known = [...table].filter(([, state]) => state === true).map(([key]) => key)
  const odd = [...known, ...Object.keys(values)].find(
    (key) => !(key in values) || table.get(key) !== true,
  )
  if (odd !== undefined) throw new Error(`Cannot make the schema: ${odd} is on one side only`)
  const properties = [...table].map(([key, state]) => {
    const reason = typeof state === 'object' ? state.unsupported : state
    if (typeof reason === 'string') {
      return [key, { ...(refusesNull ? { not: {} } : NOTHING), description: reason }] as const
    }
    const value = values[key] ?? ANY
    return [key, refusesNull || value === ANY ? value : orNothing(value)] as const
  })
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    additionalProperties: false,
    ...(also.length === 0 ? {} : { allOf: also }),
  }
}

/** A field without a value counts as absent. */
export function orNothing({ description, ...schema }: Schema): Schema {
  const about = description === undefined ? {} : { description }
  return { ...about, anyOf: [schema, NOTHING] }
}
