// Fixtures compares programs, listeners, names and limits as this process made them with what the kernel has now. While pins are
// gone it reports no difference. Then `namegate datapath detach` is removing enforcement on purpose, and a repair would undo
// that.
//
// Cost: two queries of about 20 us for each interface.

import { formatAddress } from '../../core/ip.ts'
import type { ListenerEntry } from '../entries.ts'
import type { FixtureDifference, FixtureMap, FixtureScope } from '../repair.ts'
import { carriesCgroup } from './hooks/attach.ts'
import { keyOf, keyText, type KernelMap } from './maps/kernel-map.ts'
import {
  decodeEndpoint,
  decodeGateName,
  decodeListener,
  encodeHookKey,
  encodeListener,
  encodeNumber,
} from './maps/layout.ts'
import { isBeingDetached } from './break-glass.ts'
import type { PlacedEndpoint } from '../hooks/endpoint-hooks.ts'
import { encodeShares, type EbpfOptions, type Running } from './running.ts'

const PROGRAMS = 'the programs'

export class Fixtures {
  readonly #options: EbpfOptions
  readonly #running: Running

  constructor(options: EbpfOptions, running: Running) {
    this.#options = options
    this.#running = running
  }

  *differences(
    which: FixtureScope,
    listeners: readonly ListenerEntry[],
  ): Generator<FixtureDifference, void> {
    const touched = new Set(this.#running.hooks.touched)
    this.#running.hooks.touched.clear()
    if (isBeingDetached(this.#options.pinPath)) return
    const isAsked = (ifindex: number): boolean => which === 'all' || touched.has(ifindex)
    for (const placed of this.#running.hooks.placed()) yield* this.#ofEndpoint(placed, isAsked)
    for (const [ifindex, name] of this.#running.hooks.fences.interfaces()) {
      if (isAsked(ifindex)) yield* this.#ofFence(ifindex, name)
    }
    if (which === 'touched') return
    const { maps, gate } = this.#running
    yield* this.#limits()
    const wanted = new Set(listeners.map((listener) => keyText(encodeListener(listener))))
    yield* keyDifferences('ng_listeners', maps.ng_listeners, wanted, listenerText)
    yield* keyDifferences('ng_gate', maps.ng_gate, gate.keys(), (key) => decodeGateName(key, 0))
    for (const name of gate.lost()) {
      yield difference('netfilter', name, PROGRAMS, null, () => gate.attachAgain())
    }
  }

  *#ofEndpoint(
    placed: PlacedEndpoint,
    isAsked: (ifindex: number) => boolean,
  ): Generator<FixtureDifference, void> {
    const { entry, key, state } = placed
    if (entry === undefined || key === undefined || state.kind !== 'attached') return
    const { hook } = entry
    const { hooks, links, programs, tc } = this.#running
    const mend = (): void => hooks.rewrite(entry, placed.sources)
    if (hook.kind === 'cgroup' && !carriesCgroup(links, key)) {
      yield difference('cgroup', hook.path, PROGRAMS, null, mend)
    } else if (hook.kind === 'interface' && isAsked(key.id)) {
      const isRight = tc.carries(programs, key.id, hook.side)
      if (!isRight) yield difference('tc', hook.name, PROGRAMS, null, mend)
    }
  }

  *#ofFence(ifindex: number, name: string): Generator<FixtureDifference, void> {
    const { hooks, maps, programs, tc } = this.#running
    const mend = (): void => hooks.fences.putBack(ifindex)
    const octets = maps.ng_endpoints.get(encodeHookKey({ kind: 'interface', id: ifindex }))
    if (octets === undefined || !decodeEndpoint(octets, 0).fenced) {
      yield difference('ng_endpoints', `interface:${ifindex}`, 'a fence', null, mend)
      return
    }
    const side = hooks.fences.sideOf(name)
    if (side === undefined) return
    const isRight = tc.carries(programs, ifindex, side)
    if (!isRight) yield difference('tc', name, PROGRAMS, null, mend)
  }

  *#limits(): Generator<FixtureDifference, void> {
    const { ng_config: map } = this.#running.maps
    const want = encodeShares(this.#options, this.#running.maps)
    const have = map.get(encodeNumber(0)) ?? new Uint8Array(want.length)
    if (Buffer.compare(have, want) === 0) return
    const text = (value: Uint8Array): string => new Uint32Array(value.buffer).join(' ')
    yield difference('ng_config', 'connections of an endpoint', text(want), text(have), () =>
      map.set(encodeNumber(0), want),
    )
  }
}

/** Differences of a map in which only the keys matter. */
function* keyDifferences(
  name: 'ng_listeners' | 'ng_gate',
  map: KernelMap,
  wanted: ReadonlySet<string>,
  textOf: (key: Uint8Array) => string,
): Generator<FixtureDifference, void> {
  const held = new Set(map.keyTexts())
  for (const text of wanted) {
    if (held.has(text)) continue
    const key = keyOf(text)
    yield difference(name, textOf(key), 'there', null, () => map.set(key, encodeNumber(1)))
  }
  for (const text of held) {
    if (wanted.has(text)) continue
    const key = keyOf(text)
    yield difference(name, textOf(key), null, 'there', () => map.delete(key))
  }
}

function difference(
  map: FixtureMap,
  key: string,
  want: string | null,
  have: string | null,
  mend: () => void,
): FixtureDifference {
  return { map, key, want, have, mend }
}

function listenerText(key: Uint8Array): string {
  const { family, octets, port } = decodeListener(key, 0)
  return `${formatAddress(family, octets)} port ${port}`
}
