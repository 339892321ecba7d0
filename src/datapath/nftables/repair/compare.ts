// This file compares everything in the kernel's sets with what this process wrote, after the kernel lost reports of changes. The
// comparison runs in slices, and the event loop is free between them. It skips elements that are written during the comparison.
// It skips sets to which packets add elements, because only the kernel's reports show changes of those sets.

import type { Family } from '../../../core/ip.ts'
import { suspect, type OnFound } from './suspect.ts'
import { KEPT, shapeOf, TIMED } from '../rules/layout.ts'
import { textOf, type Element } from '../tables/mirror.ts'
import { eachElement, eachElementInSlices, findElement } from '../netlink/read-elements.ts'
import type { Table } from '../tables/table.ts'

const ATTEMPTS = 5
/** Up to this many differences are verified one by one, because a listing can be wrong while the set changes. */
const ASKED_MAX = 4096
const ASKED_AT_ONCE = 32
/** An element with less time left than this may have expired before it is missed. */
const GOING_MS = 2000

type Slices = Generator<undefined>

/** Finds wrong elements and notes them, so that they are written again. */
export function* compareAll(table: Table, onFound: OnFound): Slices {
  const note = (name: string, element: Element, isThere: boolean): void => {
    suspect(table, name, element, isThere, onFound)
  }
  yield* compareAddresses(table, 4, note)
  yield* compareAddresses(table, 6, note)
  for (const name of KEPT) yield* compareKept(table, name, note)
  for (const name of TIMED) {
    if (shapeOf(name).dynamic !== true) yield* compareTimed(table, name, note)
  }
}

type Note = (name: string, element: Element, isThere: boolean) => void

/**
 * A listing can lack an element if the kernel enlarges the set's table during the listing. So a difference must appear in two
 * listings.
 */
function* compareKept(table: Table, name: string, note: Note): Slices {
  const { mirror } = table
  let before: ReadonlySet<string> | undefined
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    while (!table.isAtRest(name)) yield undefined
    const version = mirror.versionOf(name)
    const held = new Map<string, Element>()
    const keep = (element: Element): void => void held.set(textOf(element), element)
    yield* eachElementInSlices(table, name, keep, 1)
    if (mirror.versionOf(name) !== version || !table.isAtRest(name)) continue
    const wrong = new Map<string, readonly [Element, boolean]>()
    for (const [text, element] of held) {
      if (!mirror.has(name, element)) wrong.set(text, [element, true])
    }
    for (const element of mirror.list(name)) {
      const text = textOf(element)
      if (!held.has(text)) wrong.set(text, [element, false])
    }
    if (before !== undefined) {
      for (const [text, [element, isThere]] of wrong) {
        if (before.has(text)) note(name, element, isThere)
      }
    }
    if (before !== undefined || wrong.size === 0) return
    before = new Set(wrong.keys())
  }
}

function* compareTimed(table: Table, name: string, note: Note): Slices {
  const { timed } = table
  const held = new Map<string, Element>()
  const keep = (element: Element): void => void held.set(textOf(element), element)
  // This listing has no pauses, so nothing can be written during it.
  eachElement(table, name, keep)
  yield undefined
  for (const element of held.values()) note(name, element, true)
  for (const element of timed.list(name)) {
    const isGoing = (element.timeoutMs ?? GOING_MS) < GOING_MS
    if (!isGoing && !held.has(textOf(element))) note(name, element, false)
  }
}

function* compareAddresses(table: Table, family: Family, note: Note): Slices {
  const { addresses } = table.prefixes
  const name = `exact${family}`
  const found = new Map<string, Element | Uint8Array>()
  const comparison = addresses.beginComparison(table.isWriting)
  try {
    const meet = (element: Element): void => {
      const { key, data = new Uint8Array(16) } = element
      if (!comparison.meet(family, key, data)) found.set(textOf(element), element)
    }
    const outcome = yield* eachElementInSlices(table, name, meet, 1)
    if (outcome !== undefined && outcome !== 'interrupted') return
    for (const key of comparison.missing(family)) {
      if (key === undefined) yield undefined
      else if (!found.has(textOf({ key }))) found.set(textOf({ key }), key)
    }
    const isSure = found.size > ASKED_MAX
    let asked = 0
    for (const each of found.values()) {
      if (++asked % ASKED_AT_ONCE === 0) yield undefined
      const listed = each instanceof Uint8Array ? { key: each } : each
      if (table.isBuilding || comparison.wasWritten(family, listed.key)) continue
      let held = each instanceof Uint8Array ? undefined : each
      if (!isSure) {
        held = findElement(table, name, listed.key)
      }
      note(name, held ?? listed, held !== undefined)
    }
  } finally {
    addresses.endComparison()
  }
}
