// Sockets to upstream servers when the route disappears: the node's address changes, or its interface is removed and made again.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseLab } from '../../support/labs/lab.ts'
import { DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { nativeIsLacking } from '../../support/open-sockets.ts'
import { ask, helper } from '../../support/labs/udp-lab.ts'

const skip = canUseLab() ?? nativeIsLacking()

describe('UpstreamUdp', { skip }, () => {
  let lab: PodLab
  let forwarder: LabProcess
  let port = ''

  before(async () => {
    lab = podLab({ pods: 0 })
    await lab.startNameServer({ names: { 'a.test': ['198.18.0.1'] } })
    forwarder = lab.node.start('env', [...helper('udp-forwarder'), DNS_4, '53'])
    const [, found = ''] = await forwarder.untilOutput(/^ready (\d+)$/m, 20_000)
    port = found
  })

  after(async () => {
    await lab.close()
  })

  /** Asks until there is an answer. dig repeats a query that was sent without a route. */
  async function isAnswered(): Promise<string> {
    return await ask(lab.node, '127.0.0.1', 'a.test', ['-p', port, '+time=2', '+tries=4'])
  }

  it('UpstreamUdp opens new sockets when the address to which they are bound was removed', async () => {
    for (let i = 0; i < 40; i++) assert.equal(await isAnswered(), 'NOERROR')
    const { node } = lab
    node.ip('address', 'add', '192.0.2.9/25', 'dev', 'wan0')
    node.ip('address', 'del', '192.0.2.1/24', 'dev', 'wan0')
    for (let i = 0; i < 40; i++) assert.equal(await isAnswered(), 'NOERROR')
    await forwarder.untilOutput(/^faults [1-9]/m)
  })

  it('UpstreamUdp continues when the interface was removed and made again', async () => {
    const { node, internet } = lab
    node.ip('link', 'del', 'wan0')
    const failed = await ask(node, '127.0.0.1', 'a.test', ['-p', port, '+time=8', '+tries=1'])
    assert.equal(failed, 'SERVFAIL')
    lab.lab.link(
      { host: node, interface: 'wan0', addresses: ['192.0.2.1/24'] },
      { host: internet, interface: 'eth0', addresses: [`${DNS_4}/24`] },
    )
    assert.equal(await isAnswered(), 'NOERROR')
  })
})
