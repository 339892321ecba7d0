// A name as the name cache wants it, from text.

import assert from 'node:assert/strict'
import { hashOctets } from '../../src/core/tables/keyed-hash.ts'
import { parseName } from '../../src/core/name.ts'
import type { HashedName } from '../../src/names/tables/known-entries.ts'

export function hashedName(text: string): HashedName {
  const parsed = parseName(text)
  assert.ok(parsed.kind === 'ok', `${text} is a name`)
  const wire = parsed.name
  return { wire, length: wire.length, hash: hashOctets(wire, 0, wire.length) }
}
