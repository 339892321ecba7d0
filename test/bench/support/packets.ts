// Many DNS messages in one slab, as after the receipt of a batch.

export class PacketSlab {
  readonly octets: Uint8Array
  readonly offsets: Int32Array
  readonly lengths: Int32Array

  constructor(packets: readonly Uint8Array[]) {
    this.offsets = new Int32Array(packets.length)
    this.lengths = Int32Array.from(packets, (packet) => packet.length)
    this.octets = new Uint8Array(this.lengths.reduce((sum, length) => sum + length, 0))
    let at = 0
    packets.forEach((packet, i) => {
      this.offsets[i] = at
      this.octets.set(packet, at)
      at += packet.length
    })
  }

  get count(): number {
    return this.offsets.length
  }
}

/** A query for an A record with RD and an OPT of 1,232 octets, as a stub resolver sends it (RFC 1035 4.1, RFC 6891). */
export function mkQuery(id: number, name: Uint8Array): Uint8Array {
  const header = [id >>> 8, id & 0xff, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1]
  const opt = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]
  return Uint8Array.from([...header, ...name, 0, 1, 0, 1, ...opt])
}
