// A Machine reads facts about this host that namegate depends on: files of the kernel and of other programs, kernel features, capabilities.
// All paths start at `root`, which is empty except in tests. A Machine writes nothing.

import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { RunTool } from '../../intercept/tools.ts'

/** Number of a capability (capabilities(7)). */
export const CAPABILITIES = {
  CAP_NET_BIND_SERVICE: 10,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
  CAP_SYS_ADMIN: 21,
  CAP_PERFMON: 38,
  CAP_BPF: 39,
} as const
export type Capability = keyof typeof CAPABILITIES

/** A part of the kernel: its configuration option without CONFIG_, and its module. */
export interface KernelPart {
  readonly option: string
  /** Undefined if it is never a module. */
  readonly module?: string
}

export class Machine {
  readonly root: string
  readonly run: RunTool
  #options: ReadonlyMap<string, string> | undefined | 'not read' = 'not read'

  constructor(run: RunTool, root = '') {
    this.run = run
    this.root = root
  }

  /** The text of a file. Undefined if it cannot be read. */
  read(path: string): string | undefined {
    try {
      return readFileSync(join(this.root, path), 'utf8')
    } catch {
      return undefined
    }
  }

  exists(path: string): boolean {
    return existsSync(join(this.root, path))
  }

  /** The number in a file of /proc or /sys. Undefined if there is none. */
  number(path: string): number | undefined {
    const text = this.read(path)?.trim() ?? ''
    return /^-?\d+$/.test(text) ? Number(text) : undefined
  }

  /** The release of the kernel, such as `6.1.0-28-amd64`. */
  get release(): string {
    return this.read('/proc/sys/kernel/osrelease')?.trim() ?? ''
  }

  /** True for a kernel of this version or newer. Undefined if the version cannot be read. */
  isAtLeast(major: number, minor: number): boolean | undefined {
    const [, found, next] = /^(\d+)\.(\d+)/.exec(this.release) ?? []
    if (found === undefined) return undefined
    return Number(found) > major || (Number(found) === major && Number(next) >= minor)
  }

  /** True if the kernel has the part, or can load it. Undefined if no file says so. */
  has({ option, module }: KernelPart): boolean | undefined {
    if (module !== undefined && this.exists(`/sys/module/${module}`)) return true
    const options = this.#kernelOptions()
    const value = options?.get(option)
    if (options !== undefined && value !== 'm') return value === 'y'
    const modules = this.#modules()
    if (modules === undefined || module === undefined) return value === 'm' ? true : undefined
    return modules.has(module)
  }

  /** The effective capabilities of this process. Undefined if they cannot be read. */
  get capabilities(): bigint | undefined {
    const [, hex] = /^CapEff:\s*([0-9a-f]+)$/m.exec(this.read('/proc/self/status') ?? '') ?? []
    return hex === undefined ? undefined : BigInt(`0x${hex}`)
  }

  /** True if this process has the capability, or if that cannot be read. */
  can(name: Capability): boolean {
    const all = this.capabilities
    return all === undefined || ((all >> BigInt(CAPABILITIES[name])) & 1n) === 1n
  }

  /** The nearest folder above a path, or the path itself, that exists, and whether this process can write there. */
  writable(path: string): { readonly at: string; readonly can: boolean } {
    let at = path
    while (!this.exists(at) && at !== dirname(at)) at = dirname(at)
    try {
      accessSync(join(this.root, at), constants.W_OK)
      return { at, can: true }
    } catch {
      return { at, can: false }
    }
  }

  /** Options with the values y and m, from the running kernel or from its package. */
  #kernelOptions(): ReadonlyMap<string, string> | undefined {
    if (this.#options === 'not read') {
      const text = this.#packed('/proc/config.gz') ?? this.read(`/boot/config-${this.release}`)
      const lines = text?.matchAll(/^CONFIG_(\w+)=([ym])$/gm)
      this.#options =
        lines === undefined
          ? undefined
          : new Map(Array.from(lines, ([, option = '', value = '']) => [option, value]))
    }
    return this.#options
  }

  #packed(path: string): string | undefined {
    try {
      return gunzipSync(readFileSync(join(this.root, path))).toString('latin1')
    } catch {
      return undefined
    }
  }

  /** Names of the modules that the kernel has or can load. Undefined if its modules are not installed. */
  #modules(): ReadonlySet<string> | undefined {
    const folder = `/lib/modules/${this.release}`
    const list = this.read(`${folder}/modules.dep`)
    if (list === undefined) return undefined
    const text = `${list}\n${this.read(`${folder}/modules.builtin`) ?? ''}`
    const names = text.matchAll(/^\S*\/([\w-]+)\.ko/gm)
    return new Set(Array.from(names, ([, name = '']) => name.replaceAll('-', '_')))
  }
}
