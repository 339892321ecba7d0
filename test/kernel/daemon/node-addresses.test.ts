// Addresses that lead to the node itself: no answer opens them, also if the interface has no carrier, if the node gets the address later, and
// if it is a broadcast or anycast address.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, it } from 'node:test'
import { until } from '../../support/peers/client.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? false
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: names }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: "53" }], rules: { dns: [{ matchPattern: "**.test" }] } }]
    - toFQDNs: [{ matchPattern: "**.test" }]
`
const PORT = 7777
/** Prints the source and text of each datagram, of both families. */
const LISTENER = `import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(('::', ${PORT}))
print('listens', flush=True)
while True: print(s.recv(99).decode(), flush=True)`
const SENDER = `import socket, sys
for a in sys.argv[1:]:
  s = socket.socket(socket.AF_INET6 if ':' in a else socket.AF_INET, socket.SOCK_DGRAM)
  s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
  s.sendto(a.encode(), (a, ${PORT}))`

const ROWS = [
  { name: 'dark.test', address: '172.31.0.1', why: 'an interface without carrier' },
  { name: 'late.test', address: '203.0.113.250', why: 'an address that the node got later' },
  { name: 'wide.test', address: '172.30.0.255', why: 'the broadcast address of another subnet' },
  { name: 'any.test', address: '2001:db8:77::', why: 'the anycast address of the routers' },
]

describe('addresses of the node', { skip, timeout: 280_000 }, () => {
  let lab: PodLab
  let namegate: Namegate
  let listener: LabProcess
  before(async () => {
    lab = podLab()
    const { node } = lab
    node.ipBatch(
      'link add dark0 type veth peer name dark1',
      'addr add 172.31.0.1/16 dev dark0',
      'link set dark0 up',
      'link add wide0 type veth peer name wide1',
      'addr add 172.30.0.1/24 broadcast + dev wide0',
      'addr add 2001:db8:77::1/64 dev wide0 nodad',
      'link set wide0 up',
      'link set wide1 up',
    )
    const names = Object.fromEntries(ROWS.map(({ name, address }) => [name, [address]]))
    await lab.startNameServer({ names })
    namegate = new Namegate(lab, { policies: { 'names.yaml': POLICY }, endpoints: [ENDPOINT] })
    await namegate.start()
    listener = node.start('python3', ['-c', LISTENER])
    await listener.untilOutput(/listens/)
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('stay closed after an answer with them', async () => {
    const { node, pods } = lab
    const { host, gateway4 } = pods[0]!
    // The workload learns the address before the node has it.
    const early = await host.run('dig', ['+short', `@${gateway4}`, 'late.test'])
    assert.equal(early.stdout.trim(), '203.0.113.250')
    node.ip('addr', 'add', '203.0.113.250/32', 'dev', 'lo')
    await until('the new address', async () => {
      const { stdout } = await namegate.run('explain', '203.0.113.250:80', '--as', 'pod1')
      return /verdict: +deny/.test(stdout)
    })
    for (const { name, address } of ROWS) {
      const type = address.includes(':') ? 'AAAA' : 'A'
      const { stdout } = await host.run('dig', ['+short', `@${gateway4}`, name, type])
      assert.equal(stdout.trim(), address)
    }
    const addresses = ROWS.map(({ address }) => address)
    await host.run('python3', ['-c', SENDER, ...addresses])
    await sleep(500)
    for (const { address, why } of ROWS) assert.ok(!listener.stdout.includes(address), why)
  })

  it('reach the node without a policy, so the test can fail', async () => {
    namegate.writePolicies({})
    const addresses = ROWS.map(({ address }) => address)
    await until('all datagrams', async () => {
      await lab.pods[0]!.host.run('python3', ['-c', SENDER, ...addresses])
      return addresses.every((address) => listener.stdout.includes(address))
    })
  })
})
