// TcPrograms attaches the programs to interfaces as tc filters, with namegate's own handle at the first priority. Filters of
// other programs stay. They still see the packets that namegate's filters admit (TC_ACT_UNSPEC).
//
// Every daemon pins its programs beside its maps before it attaches them. So the pin path of a program tells which daemon owns
// it. TcPrograms never detaches the programs of another pin path. It replaces them only if no process holds the lock of that pin
// path. A program without a pin was attached by an earlier process, so it can be replaced.

import { renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UnavailableError } from '../../../core/errors.ts'
import { errnoName, type Bpf } from '../../../native/native.ts'
import { pinDirectoriesOfAll, pinDirectory } from '../maps/bpffs.ts'
import { layoutsIn } from '../maps/layouts.ts'

const TC_HANDLE = 0x4e47
const TC_PRIORITY = 1
const INGRESS = 0
const EGRESS = 1
const SIDES = [INGRESS, EGRESS]
/** Names of the programs' pins in the pin directory. */
const PINS = { tcFrom: 'ng_tc_from', tcTo: 'ng_tc_to' } as const

/** Descriptors of the programs for what an endpoint sends (tcFrom) and receives (tcTo). */
export interface TcDescriptors {
  readonly tcFrom: number
  readonly tcTo: number
}

export class TcPrograms {
  readonly #bpf: Bpf
  readonly #pinPath: string
  readonly #isInUse: (pinPath: string) => boolean
  /** Ids of programs without an owner. The kernel does not use an id again soon. */
  readonly #ownerless = new Set<number>()

  /** `isInUse` returns true if a process holds the lock of another pin path. */
  constructor(bpf: Bpf, pinPath: string, isInUse: (pinPath: string) => boolean) {
    this.#bpf = bpf
    this.#pinPath = pinPath
    this.#isInUse = isInUse
  }

  /** Pins the programs in place of those of an earlier process. Throws UnavailableError. */
  pin(programs: TcDescriptors): void {
    for (const [program, name] of [
      [programs.tcFrom, PINS.tcFrom],
      [programs.tcTo, PINS.tcTo],
    ] as const) {
      const pin = join(pinDirectory(this.#pinPath), name)
      rmSync(`${pin}_new`, { force: true })
      const result = this.#bpf.pin(program, `${pin}_new`)
      if (result < 0) throw new UnavailableError(`Cannot pin ${pin}: ${errnoName(result)}`)
      renameSync(`${pin}_new`, pin)
    }
  }

  /**
   * Attaches both programs. `side` is the side at which the endpoint's packets arrive. The program for received packets is
   * attached first, so it follows connections before the other program judges. Returns undefined on success, or the reason of the
   * failure.
   */
  attach(programs: TcDescriptors, ifindex: number, side: 'ingress' | 'egress'): string | undefined {
    const other = this.runningOwner(ifindex)
    if (other !== undefined) return `the programs of the daemon with pin path ${other} are there`
    const [from, to] = sidesOf(side)
    const results = [
      this.#bpf.tcAttach(ifindex, to, TC_HANDLE, TC_PRIORITY, programs.tcTo),
      this.#bpf.tcAttach(ifindex, from, TC_HANDLE, TC_PRIORITY, programs.tcFrom),
    ]
    const failed = results.find((result) => result < 0)
    return failed === undefined ? undefined : errnoName(failed)
  }

  /** True if both programs are where `attach` puts them. */
  carries(programs: TcDescriptors, ifindex: number, side: 'ingress' | 'egress'): boolean {
    const [from, to] = sidesOf(side)
    return (
      this.#at(ifindex, from) === this.#bpf.programId(programs.tcFrom) &&
      this.#at(ifindex, to) === this.#bpf.programId(programs.tcTo)
    )
  }

  /** Detaches the programs, except those of another pin path. It is no error if the interface is gone. */
  detach(ifindex: number): void {
    for (const side of SIDES) {
      if (this.#ownerAt(ifindex, side) !== undefined) continue
      this.#bpf.tcDetach(ifindex, side, TC_HANDLE, TC_PRIORITY)
    }
  }

  /** Returns the pin path of another running daemon whose programs are on the interface, or undefined. */
  runningOwner(ifindex: number): string | undefined {
    return SIDES.map((side) => this.#ownerAt(ifindex, side)).find(
      (pinPath) => pinPath !== undefined && this.#isInUse(pinPath),
    )
  }

  /** Returns the id of the program on one side, or a negative errno. */
  #at(ifindex: number, side: number): number {
    return this.#bpf.tcQuery(ifindex, side, TC_HANDLE, TC_PRIORITY)
  }

  /** Returns the pin path of the other daemon that owns the program on one side, or undefined. */
  #ownerAt(ifindex: number, side: number): string | undefined {
    const program = this.#at(ifindex, side)
    if (program <= 0 || this.#ownerless.has(program)) return undefined
    // Another version of this daemon may have pinned its programs in the directory of its own layout.
    if (layoutsIn(this.#pinPath).some((own) => this.#isPinnedIn(own, program))) return undefined
    for (const folder of pinDirectoriesOfAll()) {
      if (this.#isPinnedIn(folder, program)) return dirname(folder)
    }
    this.#ownerless.add(program)
    return undefined
  }

  #isPinnedIn(folder: string, program: number): boolean {
    return Object.values(PINS).some((name) => {
      const fd = this.#bpf.openPin(join(folder, name))
      if (fd < 0) return false
      const found = this.#bpf.programId(fd)
      this.#bpf.close(fd)
      return found === program
    })
  }
}

/** Returns the side at which the kernel sees what an endpoint sends, and the side for what the endpoint receives. */
function sidesOf(side: 'ingress' | 'egress'): readonly [from: number, to: number] {
  return side === 'ingress' ? [INGRESS, EGRESS] : [EGRESS, INGRESS]
}
