// A world for `namegate exec`: a host that calls it, and behind its default route a host with a name server, web servers and an echo of
// datagrams. Root runs `exec` directly. An ordinary user gets a tun node of mode 0666 in a mount namespace of its own, and a checkout and
// Node.js that this user can read.

import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiled } from '../peers/compiled.ts'
import { canUseLab, Lab, type Host } from './lab.ts'
import type { LabProcess, Output } from './lab-process.ts'
import { programArgs } from './program.ts'

export const CALLER_4 = '198.18.1.2'
export const DNS_4 = '198.18.53.1'
export const OTHER_DNS_4 = '198.18.53.9'
export const OTHER_DNS_6 = '2001:db8:53::9'
export const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
export const BANK = { name: 'www.bank.test', address4: '198.18.50.1', address6: '2001:db8:80::2' }
export const UNLEARNED_4 = '198.18.66.6'
export const UNLEARNED_6 = '2001:db8:66::6'
/** A host with private addresses. */
export const PRIVATE = {
  name: 'private.shop.test',
  address4: '10.66.7.1',
  address6: 'fd66:7::1',
}
/** A name with a TTL of one second. */
export const BRIEF = { name: 'brief.shop.test', address4: '198.18.41.1' }
/** A name with the caller's address. */
export const GUARDED = 'guarded.shop.test'

const WORLD_4 = '198.18.1.1'
const WORLD_6 = '2001:db8:1::1'
const CALLER_6 = '2001:db8:1::2'
/** A user number without an account. */
const USER = '47053'
const LIMIT_MS = 60_000

const ZONES = {
  names: {
    [SHOP.name]: [SHOP.address4, SHOP.address6],
    [BANK.name]: [BANK.address4, BANK.address6],
    [PRIVATE.name]: [PRIVATE.address4],
    [GUARDED]: [CALLER_4, '127.0.0.1', '169.254.169.254'],
  },
  pools: { [BRIEF.name]: { first: BRIEF.address4, size: 1, perAnswer: 1, ttl: 1 } },
}

export type Who = 'root' | 'user'

/** The reason why the lab cannot be used here, or undefined. */
export function canUseExecLab(): string | undefined {
  return canUseLab()
}

export interface ExecRun {
  readonly who: Who
  /** Options and command of `namegate exec`. */
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** For a user: shell commands as root, in the mount namespace of this run. */
  readonly prepare?: string
  /** The working folder; default: the checkout. */
  readonly folder?: string
}

export class ExecLab {
  readonly caller: Host
  readonly world: Host
  readonly folder: string
  readonly #lab = new Lab()
  /** The folder of bin/namegate. */
  readonly #program: string

  private constructor(program: string) {
    this.#program = program
    this.folder = mkdtempSync(join(tmpdir(), 'ng-exec-lab-'))
    chmodSync(this.folder, 0o755)
    this.caller = this.#lab.addHost('caller')
    this.world = this.#lab.addHost('world')
    const [own, far] = ['up0', 'down0']
    this.#lab.link(
      { host: this.caller, interface: own, addresses: [`${CALLER_4}/24`, `${CALLER_6}/64`] },
      { host: this.world, interface: far, addresses: [`${WORLD_4}/24`, `${WORLD_6}/64`] },
    )
    this.caller.ipBatch(`route add default via ${WORLD_4}`, `route add default via ${WORLD_6}`)
    const addresses4 = [
      DNS_4,
      OTHER_DNS_4,
      SHOP.address4,
      BANK.address4,
      UNLEARNED_4,
      BRIEF.address4,
      PRIVATE.address4,
    ]
    const addresses6 = [OTHER_DNS_6, SHOP.address6, BANK.address6, UNLEARNED_6, PRIVATE.address6]
    this.world.ipBatch(
      ...addresses4.map((address) => `address add ${address}/32 dev lo`),
      ...addresses6.map((address) => `address add ${address}/128 dev lo nodad`),
    )
  }

  /** Opens the lab without servers. */
  static bare(program = process.cwd()): ExecLab {
    return new ExecLab(program)
  }

  /** Opens the lab and starts its servers. */
  static async open(): Promise<ExecLab> {
    const lab = new ExecLab(process.cwd())
    try {
      const servers = [
        lab.serve(
          'nameserver.ts',
          `${DNS_4},${OTHER_DNS_4},${OTHER_DNS_6}`,
          '53',
          JSON.stringify(ZONES),
        ),
        lab.serve('nameserver.ts', OTHER_DNS_4, '5353', JSON.stringify(ZONES)),
        lab.serve('webserver.ts', '80,443,853,8080'),
        lab.#start(lab.caller, 'webserver.ts', '80'),
      ]
      for (const server of servers) await server.until(() => ready(server), 'ready', LIMIT_MS)
      return lab
    } catch (error) {
      await lab.close()
      throw error
    }
  }

  serve(program: string, ...args: readonly string[]): LabProcess {
    return this.#start(this.world, program, ...args)
  }

  #start(host: Host, program: string, ...args: readonly string[]): LabProcess {
    const path = `test/support/peers/${program}`
    return host.start(process.execPath, programArgs(path, ...args))
  }

  /** Copies a C program of test/support to a place where every user can run it. */
  compile(name: string): string {
    const program = join(this.folder, name)
    copyFileSync(compiled(name), program)
    return program
  }

  /** Runs `namegate exec` to its end. It asks the world's name server. */
  async exec({ who, args, env = {}, prepare, folder }: ExecRun): Promise<Output> {
    const { command, rest } = this.commandOf(who, args, prepare, folder)
    return await this.caller.run(command, rest, { env, limitMs: LIMIT_MS })
  }

  /** Starts `namegate exec` and returns at once. */
  start({ who, args, env = {}, prepare, folder }: ExecRun): LabProcess {
    const { command, rest } = this.commandOf(who, args, prepare, folder)
    return this.caller.start(command, rest, { env })
  }

  commandOf(
    who: Who,
    args: readonly string[],
    prepare = 'true',
    folder = '.',
  ): { command: string; rest: readonly string[] } {
    const isAsked = args.includes('--upstream')
    const upstream = isAsked ? [] : ['--upstream', `${DNS_4}:53`]
    const options = ['exec', ...upstream, ...args]
    // bin/namegate runs what setup.sh has compiled, otherwise the sources.
    const program = `${this.#program}/bin/namegate`
    if (who === 'root' && folder === '.') return { command: program, rest: options }
    if (who === 'root') {
      const there = ['-c', 'cd "$1" && shift && exec "$@"', 'sh', folder]
      return { command: 'sh', rest: [...there, program, ...options] }
    }
    const inner = [
      'set -e; mkdir -p repo bin; mount --bind "$1" repo; touch bin/node; mount --bind "$2" bin/node',
      'mkdir -p dev; mount -t tmpfs tmpfs dev; mknod -m 0666 dev/tun c 10 200; mount --bind dev/tun /dev/net/tun',
      prepare,
      `PATH=$PWD/bin:$PATH; cd repo; shift 2; program=$PWD/bin/namegate; cd '${folder}'`,
      `exec setpriv --reuid ${USER} --regid ${USER} --clear-groups --bounding-set=-all --inh-caps=-all -- "$program" "$@"`,
    ].join('; ')
    const script = `cd ${this.folder}; ${inner}`
    return {
      command: 'unshare',
      rest: ['--mount', 'sh', '-c', script, 'sh', this.#program, process.execPath, ...options],
    }
  }

  async close(): Promise<void> {
    await this.#lab.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function ready(server: LabProcess): true | undefined {
  return server.stdout.includes('ready') ? true : undefined
}
