// The addon's sockets when the kernel accepts no more datagrams, or no run of them at once: a peer with an unknown hardware address fills
// the smallest send buffer, and a link with a small MTU accepts no runs.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseLab, Lab, type Host } from '../../support/labs/lab.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { nativeIsLacking } from '../../support/open-sockets.ts'
import { helper } from '../../support/labs/udp-lab.ts'

const skip = canUseLab() ?? nativeIsLacking()

/** Prints the number of each datagram once, when it reads a line. */
const PEER = `
const socket = require('dgram').createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
const seen = new Set()
socket.on('message', (message) => {
  seen.add(message.readUInt32BE(2))
  if (seen.size % 100 === 0 || seen.size === Number(process.argv[1])) console.log('seen ' + seen.size)
})
socket.bind(53, '0.0.0.0', () => console.log('ready'))`

describe('Datagrams', { skip }, () => {
  let lab: Lab
  let node: Host
  let peer: Host

  before(() => {
    lab = new Lab()
    node = lab.addHost('node')
    peer = lab.addHost('peer')
    lab.link(
      { host: node, interface: 'out', addresses: ['10.9.9.1/24'] },
      { host: peer, interface: 'in', addresses: ['10.9.9.2/24'] },
    )
  })

  after(async () => {
    await lab.close()
  })

  async function startPeer(count: number): Promise<LabProcess> {
    const process_ = peer.start(process.execPath, ['-e', PEER, '--', String(count)])
    await process_.untilOutput(/^ready$/m)
    return process_
  }

  function send(count: number, octets: number): LabProcess {
    return node.start('env', [...helper('udp-sender'), '10.9.9.2', '53', `${count}`, `${octets}`])
  }

  it('Datagrams keeps 1,024 datagrams for a full socket, and sends them when there is room', async () => {
    peer.ip('link', 'set', 'in', 'arp', 'off')
    node.sysctl('net.ipv4.neigh.out.mcast_solicit=1000')
    const seen = await startPeer(0)
    const sender = send(1500, 100)
    const [, waiting, dropped] = await sender.until(
      () => /^waiting (\d+) dropped (\d+)$/m.exec(sender.stdout) ?? undefined,
      'a full socket',
      20_000,
    )
    // Runs that leave in one piece are kept whole or not at all.
    assert.ok(Number(waiting) > 1024 - 64 && Number(waiting) <= 1024, `${waiting} wait`)
    assert.ok(Number(dropped) > 300, `${dropped} are above the bound`)
    const mac = /link\/ether (\S+)/.exec(peer.ip('link', 'show', 'in'))?.[1] ?? ''
    node.ip('neigh', 'replace', '10.9.9.2', 'lladdr', mac, 'dev', 'out')
    await sender.untilOutput(new RegExp(`^sent ${1500 - Number(dropped)}$`, 'm'), 20_000)
    await seen.untilOutput(/^seen 1000$/m, 20_000)
    assert.doesNotMatch(sender.stdout, /fault/)
    await seen.stop()
    peer.ip('link', 'set', 'in', 'arp', 'on')
  })

  it('Datagrams sends datagrams one by one over a link that is too small for runs', async () => {
    for (const [host, end] of [
      [node, 'out'],
      [peer, 'in'],
    ] as const) {
      host.ip('link', 'set', end, 'mtu', '600')
    }
    const mac = /link\/ether (\S+)/.exec(peer.ip('link', 'show', 'in'))?.[1] ?? ''
    node.ip('neigh', 'replace', '10.9.9.2', 'lladdr', mac, 'dev', 'out')
    for (const octets of [100, 900]) {
      const seen = await startPeer(200)
      const sender = send(200, octets)
      await sender.untilOutput(/^sent 200$/m, 20_000)
      await seen.untilOutput(/^seen 200$/m, 20_000)
      await seen.stop()
    }
  })
})
