// The addon's UDP listeners on the real kernel. A pod asks servers that do not exist, by nftables' tproxy on the node and by redirect in
// its own network namespace. The answers have the asked address and port as source.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canUseLab } from '../../support/labs/lab.ts'
import type { Pod, PodLab } from '../../support/labs/lab-pod.ts'
import { nativeIsLacking } from '../../support/open-sockets.ts'
import { compiled } from '../../support/peers/compiled.ts'
import {
  ask,
  helper,
  indexOf,
  lastSeen,
  loadRules,
  PORT,
  repliesOf,
  SERVERS,
  startListener,
  tproxyLab,
  withTproxy,
} from '../../support/labs/udp-lab.ts'

const skip = canUseLab() ?? nativeIsLacking()

const REDIRECT_RULES = `
table inet test {
  chain out {
    type nat hook output priority -100
    udp dport 53 redirect to :${PORT}
  }
}`

describe('Datagrams', { skip }, () => {
  let lab: PodLab
  const folder = mkdtempSync(join(tmpdir(), 'namegate-udp-'))

  before(async () => {
    lab = await tproxyLab(3)
  })

  after(async () => {
    await lab.close()
    rmSync(folder, { recursive: true, force: true })
  })

  function podAt(number: number): Pod {
    return lab.pods[number] ?? assert.fail('no such pod')
  }

  it('Datagrams answers from the asked server in mode tproxy and knows the interface', async () => {
    await withTproxy(lab.node, undefined, async (listener) => {
      for (const number of [0, 1]) {
        const pod = podAt(number)
        for (const server of SERVERS) {
          assert.equal(await ask(pod.host, server), 'REFUSED', server)
          const client = server.includes(':') ? pod.address6 : pod.address4
          const index = indexOf(lab.node, pod.interface)
          const seen = { client, asked: server, port: 53, interface: index }
          assert.deepEqual(lastSeen(listener), seen)
        }
      }
      const replies = await repliesOf(listener, podAt(0).host, SERVERS[0])
      assert.equal(replies, 'opened 2 raw 0 failed 0', 'one socket for each family')
    })
  })

  it('Datagrams answers in mode redirect from the address to which the packet was sent', async () => {
    const { host, address4, address6 } = podAt(2)
    await loadRules(host, REDIRECT_RULES)
    const listener = await startListener(host, 'redirect', String(PORT))
    for (const server of SERVERS) assert.equal(await ask(host, server), 'REFUSED', server)
    const { asked } = lastSeen(listener) as { asked: string }
    assert.ok(['127.0.0.1', '::1', address4, address6].includes(asked), asked)
  })

  it('Datagrams on every address answers from the asked one', async () => {
    const { host } = podAt(1)
    for (const address of ['127.7.7.7/32', 'fd00:7::7/128'])
      host.ip('address', 'add', address, 'dev', 'lo')
    const listener = await startListener(host, 'explicit', '5300')
    for (const address of [
      '127.0.0.1',
      '127.7.7.7',
      '::1',
      'fd00:7::7',
      '10.20.2.2',
      'fd20:2::2',
    ]) {
      assert.equal(await ask(host, address, 'a.test', ['-p', '5300']), 'REFUSED', address)
      assert.match(listener.stdout, new RegExp(`asks ${address} 5300 on`))
    }
  })

  it('Datagrams drops a query whose sender cannot get an answer', async () => {
    const { host } = podAt(1)
    const listener = await startListener(host, 'explicit', '5301')
    const program = compiled('spoof')
    const rows: readonly (readonly [client: string, port: number, reason: string])[] = [
      ['127.0.0.9', 0, 'port 0'],
      ['255.255.255.255', 4242, 'every host of the link'],
      ['224.0.0.5', 4242, 'a group'],
      ['239.1.1.1', 4242, 'another group'],
      ['127.0.0.10', 4242, 'a host and a port'],
    ]
    for (const [client, port, reason] of rows) {
      const args = ['claim', client, String(port), '127.0.0.1', '5301', 'a.test']
      const { code, stderr } = await host.run(program, args)
      assert.equal(code, 0, `${reason}: ${stderr}`)
    }
    // The earlier queries have been read by then.
    await listener.untilOutput(/^127\.0\.0\.10 asks /m)
    const clients = [...listener.stdout.matchAll(/^(\S+) asks /gm)].map(([, client]) => client)
    assert.deepEqual(clients, ['127.0.0.10'])
  })

  it('Datagrams names the privilege that mode tproxy needs', async () => {
    const [node = '', ...args] = helper('udp-listener')
    const without = ['--bounding-set', '-net_admin,-net_raw', node, ...args, 'tproxy', '10054']
    const { code, stderr } = await podAt(0).host.run('setpriv', without)
    assert.notEqual(code, 0)
    assert.match(stderr, /\(UDP\): no privilege for mode tproxy: run as root or with CAP_NET_ADMIN/)
  })
})
