// Compares everything in the kernel's sets with what this process wrote, after the kernel lost reports of changes. The comparison runs in
// slices with the event loop free between them, and skips what is written meanwhile. Only the kernel's reports tell of sets to which packets
// add elements.

import type { Family } from '../../../core/ip.ts'
import { suspect, type OnFound } from './suspect.ts'
import { KEPT, shapeOf, TIMED } from '../rules/layout.ts'
import { textOf, type Element } from '../tables/mirror.ts'
import { eachElement, eachElementInSlices } from '../netlink/read-elements.ts'
import type { Table } from '../tables/table.ts'

const ATTEMPTS = 5
/** What a listing lacks or has too much is asked for one by one, up to so many: it can be wrong while the set changes. */
const ASKED_MAX = 4096
const ASKED_AT_ONCE = 32
/** What goes in so short a time may be gone by the time that it is missed. */
const GOING_MS = 2000

type Slices = Generator<undefined>

/** Notes what is not as it should be, to be written anew. */
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

/** A listing during which the kernel makes the set's table larger can lack an element: what counts is what two of them say. */
function* compareKept(table: Table, name: string, note: Note): Slices {
  const { mirror, socket, message } = table
  let before: ReadonlySet<string> | undefined
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    while (!table.isAtRest(name)) yield undefined
    const version = mirror.versionOf(name)
    const held = new Map<string, Element>()
    const keep = (element: Element): void => void held.set(textOf(element), element)
    yield* eachElementInSlices(socket, message, name, keep, 1)
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
  const { timed, socket, message } = table
  const held = new Map<string, Element>()
  const keep = (element: Element): void => void held.set(textOf(element), element)
  // At once: nothing else can be written meanwhile.
  eachElement(socket, message, name, keep)
  yield undefined
  for (const element of held.values()) note(name, element, true)
  for (const element of timed.list(name)) {
    const isGoing = (element.timeoutMs ?? GOING_MS) < GOING_MS
    if (!isGoing && !held.has(textOf(element))) note(name, element, false)
  }
}

function* compareAddresses(table: Table, family: Family, note: Note): Slices {
  const { prefixes, socket, message } = table
  const name = `exact${family}`
  const { addresses } = prefixes
  const found = new Map<string, Element | Uint8Array>()
  const comparison = addresses.beginComparison(table.isWriting)
  try {
    const meet = (element: Element): void => {
      const { key, data = new Uint8Array(16) } = element
      if (!comparison.meet(family, key, data)) found.set(textOf(element), element)
    }
    const outcome = yield* eachElementInSlices(socket, message, name, meet, 1)
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
        held = undefined
        eachElement(socket, message, name, (element) => (held = element), listed.key)
      }
      note(name, held ?? listed, held !== undefined)
    }
  } finally {
    addresses.endComparison()
  }
}
