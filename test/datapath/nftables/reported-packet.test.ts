import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readReportedPacket } from '../../../src/datapath/nftables/reported-packet.ts'
import { isOpening } from '../../support/models/packet-model/connections.ts'
import { readFrame } from '../../support/models/packet-model/packet.ts'
import { ACK, frame, SYN, tcp, udp } from '../../support/packets.ts'

const ETHERNET_HEADER = 14
const V4 = { source: '10.0.0.2', target: '203.0.113.7' }
const V6 = { source: '2001:db8::2', target: '2001:db8::7' }

test('readReportedPacket finds what the packet model finds', () => {
  const segments = [
    tcp({ from: 40_000, to: 443 }, SYN),
    tcp({ from: 40_000, to: 443 }, SYN | ACK),
    udp({ from: 40_000, to: 53 }),
  ]
  for (const addresses of [V4, V6]) {
    for (const segment of segments) {
      const octets = frame(addresses, segment)
      const read = readFrame(octets)
      assert.ok(read.kind === 'ip')
      const { family, protocol, target, sourcePort, targetPort } = read.packet
      const opening = isOpening(read.packet)
      assert.deepEqual(readReportedPacket(octets.subarray(ETHERNET_HEADER)), {
        family,
        protocol,
        target,
        sourcePort,
        targetPort,
        opening,
      })
    }
  }
})

test('readReportedPacket refuses a packet that is shorter than its header', () => {
  const octets = frame(V4, udp({ from: 40_000, to: 53 })).subarray(ETHERNET_HEADER)
  for (const length of [0, 1, 19, 20, 27]) {
    assert.equal(readReportedPacket(octets.subarray(0, length)), undefined, `${length} octets`)
  }
})
