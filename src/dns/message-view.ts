// MessageView points to one message in an array: octets[offset, offset + length). The owner reuses one view for many messages, so a
// call has one argument instead of three, and allocates nothing. A view is valid only during the call that receives it.

const NOTHING = new Uint8Array(0)

export class MessageView {
  octets: Uint8Array = NOTHING
  offset = 0
  length = 0

  set(octets: Uint8Array, offset: number, length: number): this {
    this.octets = octets
    this.offset = offset
    this.length = length
    return this
  }

  /** Returns a copy of the octets. (`slice` is not used, because `slice` of a Buffer does not copy.) */
  copy(): Uint8Array {
    const copy = new Uint8Array(this.length)
    copy.set(this.octets.subarray(this.offset, this.offset + this.length))
    return copy
  }

  /** Returns a view of a whole array. */
  static of(octets: Uint8Array): MessageView {
    return new MessageView().set(octets, 0, octets.length)
  }
}
