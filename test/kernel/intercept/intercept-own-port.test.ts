// Clients ask a transparent listener at its own port, as if it were a resolver. The listener refuses everyone at once with an extended
// error: a known pod under any policy, and an unknown client without a wait. The refusal opens no other port of the node and not that port
// elsewhere, and namegate learns no name.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import {
  DNS_4,
  DNS_6,
  podLab,
  startHelper,
  type Pod,
  type PodLab,
} from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const NAME = 'www.shop.test'
const DATA = '198.18.40.1'
const ZONES = JSON.stringify({ names: { [NAME]: [DATA] } })
const OWN = 10_053
const OTHER = 10_054
const REFUSED = 'REFUSED, EDE 18'
const TRANSPORTS = ['+notcp', '+tcp'] as const
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: pod1 } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*' }] } }]
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`
const ENDPOINT = `{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: pod1 }, interface: lxc1 }`

const unavailable = canUseNamegate()
const KINDS = [
  { kind: 'ebpf', skip: unavailable ?? false },
  { kind: 'nftables', skip: unavailable ?? nftablesMaker.unavailable ?? false },
] as const

for (const { kind, skip } of KINDS) {
  describe(`a transparent listener asked at its own port, over ${kind}`, { skip }, () => {
    let lab: PodLab
    let namegate: Namegate
    let known: Pod
    let stranger: Pod

    before(async () => {
      lab = podLab({ pods: 2 })
      ;[known, stranger] = [lab.pods[0]!, lab.pods[1]!]
      namegate = new Namegate(lab, {
        policies: { 'shop.yaml': POLICY },
        endpoints: [ENDPOINT],
        listenerItems: [`{ port: ${OWN}, mode: tproxy }`],
        ...(kind === 'ebpf' ? {} : { datapath: '{ kind: nftables }' }),
        // Longer than dig waits: a client that waits gets no answer.
        config: 'intercept: { on-start: true }\nunknown-clients: { wait: 60s }',
      })
      await lab.startNameServer({ names: { [NAME]: [DATA] } })
      const gateways = lab.pods.flatMap(({ gateway4, gateway6 }) => [gateway4, gateway6])
      await startHelper(lab.internet, 'nameserver.ts', [`${DNS_4},${DNS_6}`, `${OWN}`, ZONES])
      await startHelper(lab.node, 'nameserver.ts', [gateways.join(','), `${OTHER}`, ZONES])
      await namegate.start({ attached: kind === 'ebpf' ? ['lxc1'] : [] })
    })
    after(async () => {
      await namegate.close()
      await lab.close()
    })

    it('refuses a known pod at the addresses of the node', async () => {
      const servers = [known.gateway4, known.gateway6, '192.0.2.1', '2001:db8:53::1']
      assert.deepEqual(await digs(known, servers, OWN), refusals(servers))
    })

    it('refuses an unknown client without a wait', async () => {
      const servers = [stranger.gateway4, stranger.gateway6]
      assert.deepEqual(await digs(stranger, servers, OWN), refusals(servers))
    })

    it('opens no other port of the node, not that port elsewhere, and learns nothing', async () => {
      const elsewhere = [DNS_4, DNS_6]
      const gateways = [known.gateway4, known.gateway6]
      const none = Array.from<string>({ length: 4 }).fill('no answer')
      assert.deepEqual(await digs(known, elsewhere, OWN), none)
      assert.deepEqual(await digs(known, gateways, OTHER), none)
      // The same servers answer a client that is not fenced, so the refusals above prove something.
      const data = Array.from<string>({ length: 4 }).fill(DATA)
      assert.deepEqual(await digs(stranger, elsewhere, OWN), data)
      assert.deepEqual(await digs(stranger, [stranger.gateway4, stranger.gateway6], OTHER), data)
      assert.deepEqual(await namegate.get('names'), [])
    })

    it('records the refusals in flows, and still answers intercepted queries', async () => {
      const { stdout } = await namegate.run('flows', '-o', 'json')
      const flows = stdout
        .trim()
        .split('\n')
        .map(
          (line) => JSON.parse(line) as { kind: string; endpoint: string | null; reason: string },
        )
      const denied = flows.filter((flow) => flow.kind === 'denied')
      const found = new Set(denied.map(({ endpoint, reason }) => `${endpoint} ${reason}`))
      assert.deepEqual(found, new Set(['pod1 server', 'null server']))
      const answers = await digs(known, ['10.96.0.10', known.gateway4], 53)
      assert.deepEqual(answers, Array.from<string>({ length: 4 }).fill(DATA))
    })
  })
}

function refusals(servers: readonly string[]): readonly string[] {
  return servers.flatMap(() => TRANSPORTS.map(() => REFUSED))
}

/** Asks every server at once, over UDP and TCP. Returns the address in each answer, its status, or `no answer`. */
async function digs(
  pod: Pod,
  servers: readonly string[],
  port: number,
): Promise<readonly string[]> {
  const asked = servers.flatMap((server) => TRANSPORTS.map((each) => [server, each] as const))
  return await Promise.all(
    asked.map(async ([server, transport]) => {
      const options = ['+tries=1', '+time=2', '+noall', '+comments', '+answer', transport]
      const where = [`@${server}`, '-p', `${port}`]
      const { stdout } = await pod.host.run('dig', [...options, ...where, NAME])
      const status = /status: (\w+)/.exec(stdout)?.[1]
      if (status === undefined) return 'no answer'
      const error = /EDE: (\d+)/.exec(stdout)?.[1]
      return / A (\S+)/.exec(stdout.replaceAll(/\s+/g, ' '))?.[1] ?? `${status}, EDE ${error}`
    }),
  )
}
