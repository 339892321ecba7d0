// The prefixes of the kernel's map, read by a thread from their pin before the datapath is started, while the daemon reads its
// state folder: with a million of them either takes a second. Only for who writes the maps alone. Where they cannot be read
// so, as before the first start of a layout, nothing is lost: the start reads them itself, or says what is wrong.

import { join } from 'node:path'
import type { Bpf } from '../../../native/native.ts'
import { PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE, PrefixBatch } from '../../prefix-batch.ts'
import { pinDirectory } from './bpffs.ts'

export class ReadAhead {
  readonly #bpf: Bpf
  readonly #fd: number
  readonly #reading: object | number

  private constructor(bpf: Bpf, fd: number) {
    this.#bpf = bpf
    this.#fd = fd
    this.#reading = bpf.gather(fd, PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE)
  }

  /** Undefined: there is no such map. */
  static begin(bpf: Bpf, pinPath: string): ReadAhead | undefined {
    const fd = bpf.openPin(join(pinDirectory(pinPath), 'ng_ipcache'))
    if (fd < 0) return undefined
    const [keySize, valueSize] = shapeOf(bpf, fd)
    if (keySize === PREFIX_KEY_SIZE && valueSize === PREFIX_VALUE_SIZE)
      return new ReadAhead(bpf, fd)
    bpf.close(fd)
    return undefined
  }

  /** What was read, once; waits for it. Undefined: it could not be read. */
  take(): PrefixBatch | undefined {
    const read =
      typeof this.#reading === 'number' ? this.#reading : this.#bpf.gathered(this.#reading)
    this.#bpf.close(this.#fd)
    return typeof read === 'number' ? undefined : PrefixBatch.of(...read)
  }
}

function shapeOf(bpf: Bpf, fd: number): Uint32Array {
  const shape = new Uint32Array(3)
  bpf.shape(fd, shape)
  return shape
}
