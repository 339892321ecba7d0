// Makes names and lessons for the name cache from text.

import assert from 'node:assert/strict'
import type { EndpointId } from '../../src/core/ids.ts'
import type { Family } from '../../src/core/ip.ts'
import { hashOctets } from '../../src/core/tables/keyed-hash.ts'
import { parseName } from '../../src/core/name.ts'
import { Lesson } from '../../src/names/lesson.ts'
import type { NameCache } from '../../src/names/name-cache.ts'
import { NameKey } from '../../src/names/tables/name-table.ts'

export function hashedName(text: string): NameKey {
  const parsed = parseName(text)
  assert.ok(parsed.kind === 'ok', `${text} is a name`)
  const wire = parsed.name
  return new NameKey().set(wire, wire.length, hashOctets(wire, 0, wire.length))
}

export interface Taught {
  readonly endpoint: EndpointId
  readonly name: NameKey
  readonly family: Family
  readonly octets: Uint8Array
  /** Seconds. */
  readonly ttl: number
}

/** The lesson from an answer that arrives now. */
export function lessonOf(names: NameCache, taught: Taught): Lesson {
  const lesson = new Lesson()
  lesson.endpoint = taught.endpoint
  lesson.name = taught.name
  lesson.family = taught.family
  lesson.octets.set(taught.octets)
  lesson.now = names.tick()
  lesson.liveUntil = lesson.now + Math.ceil(taught.ttl)
  return lesson
}

/** Calls `NameCache.learn` with an answer that arrives now. */
export function teach(names: NameCache, taught: Taught): number {
  return names.learn(lessonOf(names, taught))
}
