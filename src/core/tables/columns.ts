// Columns of tables that have their full size from the start. V8 counts the octets of an ordinary array when the array is made, touched or
// not, and collects the whole heap each time that 64 MB are added. With the default limits the tables of a daemon have 775 MB, nearly all
// of it untouched, so each start collected eight times. V8 does not count shared memory. No other thread gets these arrays.

/** The memory of the large columns. */
const large = new Set<WeakRef<SharedArrayBuffer>>()
/** Smaller columns are ordinary arrays. Tests make many of them, and V8 must notice when these are garbage. */
const SHARED_LEAST = 1 << 18

export function int32Column(rows: number): Int32Array {
  return new Int32Array(memory(rows * Int32Array.BYTES_PER_ELEMENT))
}

export function uint8Column(rows: number): Uint8Array {
  return new Uint8Array(memory(rows))
}

export function float64Column(rows: number): Float64Array {
  return new Float64Array(memory(rows * Float64Array.BYTES_PER_ELEMENT))
}

/** Returns the memory of all large columns that are in use. */
export function largeColumns(): readonly Uint8Array[] {
  const columns: Uint8Array[] = []
  for (const each of large) {
    const memory = each.deref()
    if (memory === undefined) large.delete(each)
    else columns.push(new Uint8Array(memory))
  }
  return columns
}

function memory(octets: number): ArrayBufferLike {
  if (octets < SHARED_LEAST) return new ArrayBuffer(octets)
  const shared = new SharedArrayBuffer(octets)
  large.add(new WeakRef(shared))
  return shared
}
