// This file writes the traffic that needs no rule. ng_listeners has namegate's own listeners. ng_intercepted has the interfaces
// whose DNS the programs let pass, because rules behind the programs redirect it. ng_intercepted stays in the pins. So `intercept
// up` and `intercept down` set it with or without a daemon, and a killed daemon changes nothing.
//
// An interface that leaves the list stays quiet for a while, so that answers on their way begin no connection. After this time
// the programs ignore the interface's entry, and the next write removes the entry.

import { join } from 'node:path'
import { UnavailableError } from '../../../core/errors.ts'
import { type Bpf, errnoName } from '../../../native/native.ts'
import type { InterceptedInterface } from '../../abilities.ts'
import { pinDirectory } from './bpffs.ts'
import { KernelMap, keyOf, keyText } from './kernel-map.ts'
import {
  encodeListener,
  encodeLong,
  encodeNumber,
  MAP_SHAPES,
  readLong,
  readNumber,
} from './layout.ts'
import type { ListenerEntry } from '../../entries.ts'

const NAME = 'ng_intercepted'
const ENOENT = -2
const BIT_4 = 1
const BIT_6 = 2
const QUIET_AT = 1
const BRIDGE_PORT_AT = 2
const MAC_AT = 4
const UNTIL_AT = 16
/** Seconds, longer than any answer can be on its way. */
const QUIET_SECONDS = 60

/**
 * Sets the intercepted interfaces to exactly these. Returns false if nothing is pinned there, so that no program drops packets.
 */
export function setIntercepted(
  bpf: Bpf,
  pinPath: string,
  entries: readonly InterceptedInterface[],
): boolean {
  return withMap(bpf, pinPath, (map) => writeIntercepted(bpf, map, entries)) !== undefined
}

/** Clears the list, so that policy judges port 53 on every interface. */
export function clearIntercepted(bpf: Bpf, pinPath: string): boolean {
  return setIntercepted(bpf, pinPath, [])
}

/** The intercepted interfaces, or undefined if nothing is pinned there. */
export function readIntercepted(
  bpf: Bpf,
  pinPath: string,
): readonly InterceptedInterface[] | undefined {
  return withMap(bpf, pinPath, listIntercepted)?.result
}

/**
 * Does the same as `setIntercepted` on the open map. Closes interfaces that left the list before it opens new ones. Throws if the
 * kernel refuses.
 */
export function writeIntercepted(
  bpf: Bpf,
  map: KernelMap,
  entries: readonly InterceptedInterface[],
): void {
  const now = bpf.now()
  const listed = entries.filter(({ families }) => families[4] || families[6])
  const wanted = new Set(listed.map(({ ifindex }) => ifindex))
  const closing: (readonly [key: Uint8Array, value: Uint8Array])[] = []
  map.forEach((keys, key, values, value) => {
    if (wanted.has(readNumber(keys, key))) return
    closing.push([keys.slice(key, key + map.keySize), values.slice(value, value + map.valueSize)])
  })
  for (const [key, value] of closing) {
    if (value[0] !== 0) must(map.set(key, quiet(value, now)))
    else if (readLong(value, UNTIL_AT) < now * 1e9) must(map.delete(key))
  }
  for (const entry of listed) {
    const key = encodeNumber(entry.ifindex)
    const value = encode(entry)
    const before = map.get(key)
    if (before !== undefined) value[QUIET_AT]! |= before[QUIET_AT]!
    must(map.set(key, value))
  }
}

/** The intercepted interfaces by index, lowest first. */
export function listIntercepted(map: KernelMap): readonly InterceptedInterface[] {
  const found: InterceptedInterface[] = []
  map.forEach((keys, key, values, value) => {
    if (values[value] !== 0) found.push(decode(readNumber(keys, key), values, value))
  })
  return found.toSorted((a, b) => a.ifindex - b.ifindex)
}

/** The value of an interface that is no longer intercepted. */
function quiet(value: Uint8Array, now: number): Uint8Array {
  const left = value.slice()
  left[0] = 0
  left.set(encodeLong(Math.round((now + QUIET_SECONDS) * 1e9)), UNTIL_AT)
  return left
}

function encode({ families, bridgeMac }: InterceptedInterface): Uint8Array {
  const octets = new Uint8Array(MAP_SHAPES.ng_intercepted.value)
  octets[0] = (families[4] ? BIT_4 : 0) | (families[6] ? BIT_6 : 0)
  octets[QUIET_AT] = octets[0]
  octets.fill(0xff, UNTIL_AT, UNTIL_AT + 8)
  if (bridgeMac === undefined) return octets
  octets[BRIDGE_PORT_AT] = 1
  octets.set(bridgeMac.subarray(0, 6), MAC_AT)
  return octets
}

function decode(ifindex: number, octets: Uint8Array, at: number): InterceptedInterface {
  const bits = octets[at]!
  const families = { 4: (bits & BIT_4) !== 0, 6: (bits & BIT_6) !== 0 }
  if (octets[at + BRIDGE_PORT_AT] === 0) return { ifindex, families }
  return { ifindex, families, bridgeMac: octets.slice(at + MAC_AT, at + MAC_AT + 6) }
}

function must(errno: number): void {
  if (errno !== 0)
    throw new UnavailableError(`Cannot set intercepted interfaces: ${errnoName(errno)}`)
}

/** Returns undefined if the map is not pinned there. */
function withMap<T>(
  bpf: Bpf,
  pinPath: string,
  use: (map: KernelMap) => T,
): { readonly result: T } | undefined {
  const fd = bpf.openPin(join(pinDirectory(pinPath), NAME))
  if (fd === ENOENT) return undefined
  if (fd < 0) {
    throw new UnavailableError(`Cannot use the pins in ${pinPath}: ${errnoName(fd)}: run as root`)
  }
  try {
    return { result: use(new KernelMap(bpf, NAME, fd)) }
  } finally {
    bpf.close(fd)
  }
}

/** Sets the listeners to exactly these. Adds new listeners before it removes old ones. */
export function writeListeners(map: KernelMap, listeners: readonly ListenerEntry[]): void {
  const stale = new Set(map.keyTexts())
  const one = encodeNumber(1)
  for (const listener of listeners) {
    const key = encodeListener(listener)
    stale.delete(keyText(key))
    const errno = map.set(key, one)
    if (errno !== 0) throw new Error(`Cannot set listener: ${errnoName(errno)}`)
  }
  for (const key of stale) map.delete(keyOf(key))
}
