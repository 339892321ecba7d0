// CgroupPrograms loads the programs for cgroups when the first endpoint with a cgroup comes. A daemon without such an endpoint
// saves the time of the kernel's verifier. The programs are loaded before the cgroup exists, so that they are attached at once
// when it appears. After a failure, the next such endpoint tries again.

import type { Bpf, LoadedObject } from '../../../native/native.ts'
import { loadCgroupPrograms, programOf } from '../program.ts'

/** Descriptors of the programs for what an endpoint sends (from) and receives (to). */
export interface CgroupDescriptors {
  readonly from: number
  readonly to: number
}

export interface CgroupProgramsOptions {
  readonly bpf: Bpf
  readonly pinPath: string
  /** The octets of the kernel object. */
  readonly file: Uint8Array
  /** The loaded programs for interfaces, whose maps the programs for cgroups use. */
  readonly object: LoadedObject
}

export class CgroupPrograms {
  readonly #options: CgroupProgramsOptions
  #object: LoadedObject | string = 'the programs for cgroups are not loaded'

  constructor(options: CgroupProgramsOptions) {
    this.#options = options
  }

  get isLoaded(): boolean {
    return typeof this.#object !== 'string'
  }

  /** Loads the programs unless they are loaded. */
  prepare(): void {
    const { bpf, pinPath, file, object } = this.#options
    if (!this.isLoaded) this.#object = loadCgroupPrograms(bpf, pinPath, file, object)
  }

  /** Returns the reason if the programs are not loaded. */
  descriptors(): CgroupDescriptors | string {
    const object = this.#object
    if (typeof object === 'string') return object
    return { from: programOf(object, 'ng_cgroup_from'), to: programOf(object, 'ng_cgroup_to') }
  }

  /** Closes the descriptors. Attached programs stay. */
  close(): void {
    if (typeof this.#object !== 'string') this.#options.bpf.unload(this.#object.handle)
  }
}
