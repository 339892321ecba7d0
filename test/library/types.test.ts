// GateConfig has the keys of the configuration file at every depth, and the schema accepts every value that the types allow. The compiler
// checks this. The tests check the names of the bounds, which the compiler cannot see.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { z } from 'zod'
import type { configSchema } from '../../src/config/schema.ts'
import { configFromObject, configJsonSchema } from '../../src/config/load.ts'
import { LIMITS } from '../../src/core/limits.ts'
import type { GateConfig } from '../../src/library.ts'

type Input = z.input<typeof configSchema>

/** The path of every key of a type, such as `dns`, `dns.hold` and `dns.hold.limit`. */
type Keys<T> = T extends readonly (infer Item)[]
  ? Keys<Item>
  : T extends object
    ? { [K in keyof T & string]: K | `${K}.${Keys<NonNullable<T[K]>>}` }[keyof T & string]
    : never

type Without<T> = Omit<T, 'limits'>
type Missing = Exclude<Keys<Without<Input>>, Keys<Without<GateConfig>>>
type Unknown = Exclude<Keys<Without<GateConfig>>, Keys<Without<Input>>>

/** Compiles only if both types have the same keys. Otherwise, the error has the path of a key. */
function isNever(keys: readonly never[]): void {
  void keys
}
declare const missing: () => readonly Missing[]
declare const unknown: () => readonly Unknown[]

/** The schema accepts what the types allow. Readonly lists are the exception: the schema copies them. */
type Mutable<T> = T extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T
function take(config: Without<Input>): void {
  void config
}
declare const any: () => Mutable<Without<GateConfig>>
export function checked(): void {
  isNever(missing())
  isNever(unknown())
  take(any())
}

test('GateConfig names every bound, and configFromObject takes its defaults', () => {
  const limits: NonNullable<GateConfig['limits']> = Object.fromEntries(
    Object.entries(LIMITS).map(([key, { default: value, unit }]) => [
      key,
      unit === 'ms' ? (`${value}ms` as const) : value,
    ]),
  )
  assert.deepEqual(Object.keys(configFromObject({ limits }).limits), Object.keys(LIMITS))
})

test('GateConfig and the schema call no key `not built`', () => {
  const text = readFileSync('src/library/config-keys.ts', 'utf8')
  assert.doesNotMatch(text, /not built/i)
  assert.doesNotMatch(JSON.stringify(configJsonSchema()), /not built/i)
})
