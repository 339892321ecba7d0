// Octets inside a larger buffer that records every read outside of them.

export interface Guarded {
  readonly buf: Uint8Array
  readonly offset: number
  readonly length: number
  /** Indexes read outside the message. */
  readonly outside: readonly number[]
}

/** Slow: each access goes through a Proxy. */
export function guard(message: Uint8Array, margin = 32): Guarded {
  const slab = new Uint8Array(message.length + 2 * margin)
  slab.set(message, margin)
  const outside: number[] = []
  const buf = new Proxy(slab, {
    get(target, key) {
      const index = typeof key === 'string' ? Number(key) : NaN
      if (Number.isInteger(index) && (index < margin || index >= margin + message.length))
        outside.push(index)
      const value: unknown = Reflect.get(target, key, target)
      return value
    },
  })
  return { buf, offset: margin, length: message.length, outside }
}
