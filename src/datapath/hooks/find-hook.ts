// This file finds the kernel's present key of a configured hook, or the reason why there is none.

import { cgroupMount, cgroupPath } from '../../native/cgroup-mount.ts'
import { errnoName, type Posix } from '../../native/native.ts'
import type { Hook, HookState } from '../entries.ts'

/** The kernel's key of a hook: an interface's index, or a cgroup's id. */
export interface HookKey {
  readonly kind: 'interface' | 'cgroup'
  readonly id: number
}

/** Returns, for example, `interface:4` or `cgroup:77`. */
export function formatHookKey(key: HookKey): string {
  return `${key.kind}:${key.id}`
}

export function sameKey(a: HookKey | undefined, b: HookKey | undefined): boolean {
  return a?.kind === b?.kind && a?.id === b?.id
}

export interface PresentHook {
  readonly kind: 'present'
  readonly key: HookKey
  /** True if packets at this hook have no link header. */
  readonly layer3: boolean
  /** The folder of a cgroup; empty for an interface. */
  readonly path: string
}

export type FoundHook = PresentHook | { readonly kind: 'absent'; readonly state: HookState }

/** Link types of if_arp.h. */
const ETHERNET = 1
export const LOOPBACK = 772
const WITHOUT_LINK_HEADER: readonly number[] = [0xfffe, 519, 768, 769, 776]

const ENOENT = -2

/** True if packets of a link type have no link header. */
export function isWithoutLinkHeader(type: number): boolean {
  return WITHOUT_LINK_HEADER.includes(type)
}

export class HookFinder {
  readonly #posix: Posix
  #cgroupMount: string | undefined

  constructor(posix: Posix) {
    this.#posix = posix
  }

  find(hook: Hook): FoundHook {
    switch (hook.kind) {
      case 'none':
        return { kind: 'absent', state: { kind: 'unfenced' } }
      case 'interface':
        return this.#interface(hook.name)
      case 'cgroup':
        return this.#cgroup(hook.path)
    }
  }

  #interface(name: string): FoundHook {
    const id = this.#posix.ifIndex(name)
    if (id < 0) return waiting(`interface ${name} is not there`)
    const type = this.#posix.ifType(name)
    const layer3 = isWithoutLinkHeader(type)
    if (!layer3 && type !== ETHERNET && type !== LOOPBACK) {
      return failed(`interface ${name} is of link type ${type}, which is not supported`)
    }
    return { kind: 'present', key: { kind: 'interface', id }, layer3, path: '' }
  }

  #cgroup(configured: string): FoundHook {
    this.#cgroupMount ??= cgroupMount()
    const place = cgroupPath(this.#cgroupMount, configured)
    if (place.kind === 'bad') return failed(place.reason)
    const id = this.#posix.cgroupId(place.path)
    if (id === ENOENT) return waiting(`cgroup ${configured} is not there`)
    if (id < 0) return failed(`cgroup ${configured}: ${errnoName(id)}`)
    return { kind: 'present', key: { kind: 'cgroup', id }, layer3: true, path: place.path }
  }
}

function waiting(reason: string): FoundHook {
  return { kind: 'absent', state: { kind: 'waiting', reason } }
}

function failed(reason: string): FoundHook {
  return { kind: 'absent', state: { kind: 'failed', reason } }
}
