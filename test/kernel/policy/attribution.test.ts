// Which endpoint a query belongs to [A24, P12]. A pod that asks from another pod's address is refused, counted and shown, and no endpoint
// learns. Its own queries are served over its present interface, directly or as a bridge port. TPROXY without programs or a reverse path
// filter, so the proxy's own check decides.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Host } from '../../support/labs/lab.ts'
import { podLab, type Pod } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { readExposition } from '../../support/nodes/metrics.ts'

const NAME = 'www.shop.test'
const DATA = '198.18.40.1'
const ASKED = '10.96.0.10'
const METRIC = 'namegate_dns_queries_total{verdict="interface_mismatch"}'
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: {}
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*' }] } }]
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`
/** The rules of `intercept up` without their own check of the source interface. */
const RULES = [
  'add table ip plain',
  'add chain ip plain pre { type filter hook prerouting priority -150; }',
  ...['lxc*', 'br0'].map((name) => {
    const dns = `iifname "${name}" meta l4proto { tcp, udp } th dport 53`
    return `add rule ip plain pre ${dns} tproxy to :10053 meta mark set 0x99 accept`
  }),
]

const skip = canUseNamegate() ?? false

describe('attribution by interface and address', { skip }, () => {
  const lab = podLab({ pods: 2 })
  const { node } = lab
  const [first, second] = [lab.pods[0]!, lab.pods[1]!]
  const endpoint = ({ address4, interface: link }: Pod, name: string) =>
    `{ name: ${name}, addresses: [${address4}], labels: { app: ${name} }, interface: ${link} }`
  const namegate = new Namegate(lab, {
    policies: { 'shop.yaml': POLICY },
    endpoints: [endpoint(first, 'first'), endpoint(second, 'second')],
    listenerItems: ['{ port: 10053, mode: tproxy }'],
    datapath: '{ kind: memory }',
  })

  before(async () => {
    await lab.startNameServer({ names: { [NAME]: [DATA] } })
    assert.equal((await node.run('nft', [RULES.join('; ')])).code, 0)
    node.ip('rule', 'add', 'fwmark', '0x99', 'lookup', '99')
    node.ip('route', 'add', 'local', 'default', 'dev', 'lo', 'table', '99')
    second.host.ip('address', 'add', `${first.address4}/32`, 'dev', 'eth0')
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('serves each pod under its own address, over UDP and TCP', async () => {
    for (const { host } of [first, second]) {
      assert.deepEqual(await digs(host), [DATA, DATA])
    }
    assert.equal(await mismatches(), 0)
  })

  it('refuses a pod that asks from the address of another, counts and shows it, and learns nothing', async () => {
    const learned = await learnedPairs()
    const { code } = await second.host.run('dig', [
      ...OPTIONS,
      '+notcp',
      '-b',
      first.address4,
      'forged.shop.test',
    ])
    assert.notEqual(code, 0, 'the owner of the address gets the refusal')
    assert.equal(await mismatches(), 1)
    const flows = await namegate.run('flows', '--verdict', 'interface-mismatch', '-o', 'json')
    assert.match(
      flows.stdout,
      /"endpoint":"first".*"client":"10\.20\.1\.2".*"name":"forged\.shop\.test"/,
    )
    assert.deepEqual(await learnedPairs(), learned)
  })

  it('serves a pod whose interface became a bridge port', async () => {
    // With br_netfilter these rules would see its packets too early. The rules of the product handle that.
    node.sysctl('net.bridge.bridge-nf-call-iptables=0')
    node.ip('link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    node.ip('link', 'set', 'br0', 'up')
    node.ip('address', 'del', `${second.gateway4}/24`, 'dev', second.interface)
    node.ip('link', 'set', second.interface, 'master', 'br0')
    node.ip('address', 'add', `${second.gateway4}/24`, 'dev', 'br0')
    second.host.ip('neigh', 'flush', 'all')
    const deadline = performance.now() + 10_000
    while ((await digs(second.host)).some((data) => data !== DATA)) {
      assert.ok(performance.now() < deadline, 'it is served')
    }
  })

  async function digs(host: Host): Promise<readonly string[]> {
    const asked = ['+notcp', '+tcp'].map(async (transport) => {
      const { stdout } = await host.run('dig', [...OPTIONS, transport, NAME])
      return / A (\S+)/.exec(stdout.replaceAll(/\s+/g, ' '))?.[1] ?? stdout
    })
    return await Promise.all(asked)
  }

  /** The names without times, which can differ by a millisecond between two reads. */
  async function learnedPairs(): Promise<unknown> {
    const shown: unknown = await namegate.get('names')
    return JSON.parse(
      JSON.stringify(shown, (key, value: unknown) => (key === 'expires' ? 0 : value)),
    )
  }

  async function mismatches(): Promise<number> {
    const { stdout } = await node.run('curl', ['-s', 'http://127.0.0.1:9465/metrics'])
    return readExposition(stdout).samples.get(METRIC) ?? -1
  }
})

const OPTIONS = ['+tries=1', '+time=2', '+noall', '+answer', `@${ASKED}`] as const
