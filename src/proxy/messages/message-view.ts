// One message where it lies: octets[offset, offset + length). The owner of a view sets it again for message after
// message, so a call passes one argument instead of three and allocates nothing. Valid during the call it is given to.

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

  /** A view of a whole array. */
  static of(octets: Uint8Array): MessageView {
    return new MessageView().set(octets, 0, octets.length)
  }
}
