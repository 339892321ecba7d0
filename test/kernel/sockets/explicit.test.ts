// Explicit mode on the real kernel. A pod that asks another resolver than namegate's listener gets no answer, unless policy opens that port
// like any other. Refusals name the reason. Deny rules close addresses of allowed names. Audit lets pass and records. There is one pod for
// each policy, and one pod that is no endpoint.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from '../../support/labs/lab.ts'
import {
  DNS_4,
  DNS_6,
  OTHER_DNS_4,
  podLab,
  type Pod,
  type PodLab,
} from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? false

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const BANK = { name: 'www.bank.test', address4: '198.18.50.1', address6: '2001:db8:80::2' }
const UNLEARNED = '198.18.66.6'
const ZONES = {
  names: {
    [SHOP.name]: [SHOP.address4, SHOP.address6],
    [BANK.name]: [BANK.address4, BANK.address6],
  },
}
/** Servers that namegate does not intercept. */
const RESOLVERS = [OTHER_DNS_4, DNS_4, DNS_6] as const
const TRANSPORTS = ['+notcp', '+tcp'] as const

const DNS_PORT = "ports: [{ port: '53', protocol: ANY }]"
const ASK_SHOP = `{ toPorts: [{ ${DNS_PORT}, rules: { dns: [{ matchPattern: '*.shop.test' }] } }] }`
const SHOP_RULE = "{ toFQDNs: [{ matchPattern: '*.shop.test' }] }"

/** Pods by their policy. */
const NAMED = 0
const WORLD_WITH_DNS = 1
const WORLD_PLAIN = 2
const DENIED = 3
const AUDITED = 4
const UNKNOWN = 5
/** Packet events are read at least this often, with time for a busy machine. */
const EVENTS_MS = 2500

const EGRESS = [
  `egress: [${ASK_SHOP}, ${SHOP_RULE}]`,
  `egress: [{ toEntities: [world], toPorts: [{ ${DNS_PORT}, rules: { dns: [{ matchPattern: '*' }] } }] }]`,
  `egress: [{ toEntities: [world], toPorts: [{ ${DNS_PORT} }] }]`,
  `egress: [${ASK_SHOP}, ${SHOP_RULE}]
  egressDeny: [{ toCIDR: [198.18.40.0/24] }, { toCIDR: ['2001:db8:80::/64'] }]`,
  `egress: [${ASK_SHOP}, ${SHOP_RULE}]`,
]

function mkPolicy(pod: number, spec: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: pod${pod} }
spec:
  endpointSelector: { matchLabels: { app: pod${pod} } }
  ${spec}
`
}

function mkEndpoint(number: number): string {
  const addresses = `[10.20.${number + 1}.2, 'fd20:${number + 1}::2']`
  const audit = number === AUDITED ? ', audit: true' : ''
  return `{ name: pod${number}, addresses: ${addresses}, labels: { app: pod${number} }, interface: lxc${number + 1}${audit} }`
}

/** The status of dig's answer, its extended error and its data, or no answer. */
interface Dug {
  readonly status: string
  readonly ede: number | undefined
  readonly data: readonly string[]
}

async function dig(host: Host, server: string, ...question: readonly string[]): Promise<Dug> {
  const args = ['+tries=1', '+time=1', '+noall', '+comments', '+answer', `@${server}`, ...question]
  const { stdout } = await host.run('dig', args)
  const status = /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
  const ede = /EDE: (\d+)/.exec(stdout)?.[1]
  const records = stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
  return {
    status,
    ede: ede === undefined ? undefined : Number(ede),
    data: records.map((line) => line.split(/\s+/).at(-1) ?? ''),
  }
}

async function connects(host: Host, address: string): Promise<boolean> {
  const { code } = await host.run('timeout', [
    '0.5',
    'bash',
    '-c',
    `exec 3<>/dev/tcp/${address}/80`,
  ])
  return code === 0
}

/** Asks every resolver at once, over every transport: `ADDRESS +tcp` -> status. */
async function askResolvers(host: Host): Promise<Readonly<Record<string, string>>> {
  const cases = RESOLVERS.flatMap((server) =>
    TRANSPORTS.map((transport) => ({ server, transport })),
  )
  const entries = cases.map(async ({ server, transport }): Promise<[string, string]> => {
    return [`${server} ${transport}`, (await dig(host, server, transport, SHOP.name)).status]
  })
  return Object.fromEntries<string>(await Promise.all(entries))
}

function allResolvers(status: string): Readonly<Record<string, string>> {
  const cases = RESOLVERS.flatMap((server) =>
    TRANSPORTS.map((transport) => `${server} ${transport}`),
  )
  return Object.fromEntries(cases.map((each) => [each, status]))
}

interface Flow {
  readonly kind: string
  readonly verdict: string
  readonly endpoint: string | null
  readonly peer?: string
  readonly port?: number
  readonly name?: string | null
}

describe('explicit mode', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  const podOf = (number: number): Pod => lab.pods[number]!
  const hostOf = (number: number): Host => podOf(number).host
  /** Asks the listener from the pod. */
  const ask = async (number: number, ...question: readonly string[]): Promise<Dug> =>
    await dig(hostOf(number), podOf(number).gateway4, ...question)
  const flows = async (verdict: string): Promise<readonly Flow[]> => {
    const { stdout } = await namegate.run('flows', '--verdict', verdict, '-o', 'json')
    const lines = stdout.split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as Flow)
  }

  before(async () => {
    lab = podLab({ pods: 6 })
    await lab.startNameServer(ZONES)
    await lab.startWebServer()
    namegate = new Namegate(lab, {
      policies: Object.fromEntries(EGRESS.map((spec, i) => [`pod${i}.yaml`, mkPolicy(i, spec)])),
      endpoints: EGRESS.map((_, i) => mkEndpoint(i)),
      config: 'unknown-clients: { wait: 0s }',
    })
    await namegate.start({ attached: EGRESS.map((_, i) => podOf(i).interface) })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('lets the node itself ask every resolver', async () => {
    assert.deepEqual(await askResolvers(lab.node), allResolvers('NOERROR'))
  })

  for (const { pod, because } of [
    { pod: NAMED, because: 'whose policy has only names' },
    { pod: WORLD_WITH_DNS, because: 'that can ask any name of the world by rules.dns' },
  ]) {
    it(`answers no pod at another resolver ${because}`, async () => {
      const before = await namegate.stat('drop_policy')
      assert.deepEqual(await askResolvers(hostOf(pod)), allResolvers('no answer'))
      const dropped = (await namegate.stat('drop_policy')) - before
      assert.ok(dropped >= 6, `${dropped} packets were dropped by policy`)
    })
  }

  it('a rule without rules.dns opens port 53 of the world, like any port', async () => {
    assert.deepEqual(await askResolvers(hostOf(WORLD_PLAIN)), allResolvers('NOERROR'))
    assert.equal(await connects(hostOf(WORLD_PLAIN), UNLEARNED), false)
  })

  it('answers at the listener over UDP and TCP, IPv4 and IPv6', async () => {
    const { gateway4, gateway6, host } = podOf(NAMED)
    for (const server of [gateway4, gateway6]) {
      for (const transport of TRANSPORTS) {
        for (const [type, address] of [
          ['A', SHOP.address4],
          ['AAAA', SHOP.address6],
        ] as const) {
          const found = await dig(host, server, transport, SHOP.name, type)
          const expected = { status: 'NOERROR', ede: undefined, data: [address] }
          assert.deepEqual(found, expected, `${server} ${transport} ${type}`)
        }
      }
    }
    assert.equal(await connects(host, SHOP.address4), true)
    assert.equal(await connects(host, SHOP.address6), true)
  })

  it('answers at the listener also where rules.dns opens nothing else', async () => {
    const found = await ask(WORLD_WITH_DNS, BANK.name)
    assert.deepEqual(found, { status: 'NOERROR', ede: undefined, data: [BANK.address4] })
    assert.equal(await connects(hostOf(WORLD_WITH_DNS), BANK.address4), false)
  })

  it('refuses a name that policy does not allow, with EDE 15, and learns nothing', async () => {
    for (const transport of TRANSPORTS) {
      const found = await ask(NAMED, transport, BANK.name)
      assert.deepEqual(found, { status: 'REFUSED', ede: 15, data: [] }, transport)
    }
    assert.equal(await connects(hostOf(NAMED), BANK.address4), false)
    const denied = await flows('denied')
    assert.ok(denied.some(({ endpoint, name }) => endpoint === 'pod0' && name === BANK.name))
  })

  it('refuses a client that is no endpoint, with EDE 18', async () => {
    const { gateway4, gateway6, host } = podOf(UNKNOWN)
    for (const server of [gateway4, gateway6]) {
      for (const transport of TRANSPORTS) {
        const found = await dig(host, server, transport, SHOP.name)
        assert.deepEqual(found, { status: 'REFUSED', ede: 18, data: [] }, `${server} ${transport}`)
      }
    }
  })

  it("answers no query from an address that is not the pod's own: the kernel drops it", async () => {
    const { host, gateway4, interface: name } = podOf(NAMED)
    host.ip('address', 'add', '10.20.1.77/24', 'dev', 'eth0')
    assert.equal((await ask(NAMED, SHOP.name)).status, 'NOERROR')
    const before = await namegate.stat('drop_source')
    const found = await dig(host, gateway4, '-b', '10.20.1.77', SHOP.name)
    assert.equal(found.status, 'no answer')
    assert.ok((await namegate.stat('drop_source')) > before, `counted on ${name}`)
  })

  it('closes an allowed name where egressDeny covers its address', async () => {
    const found = await ask(DENIED, SHOP.name, 'A', SHOP.name, 'AAAA')
    assert.deepEqual(found.data, [SHOP.address4, SHOP.address6])
    assert.ok(namegate.prefixes().has(`${SHOP.address4}/32`), 'the address was learned')
    const before = await namegate.stat('drop_policy')
    assert.equal(await connects(hostOf(DENIED), SHOP.address4), false)
    assert.equal(await connects(hostOf(DENIED), SHOP.address6), false)
    assert.ok((await namegate.stat('drop_policy')) - before >= 2)
  })

  it('lets an audited endpoint pass, and records what would have been denied', async () => {
    const before = await namegate.stat('verdict_audit')
    assert.deepEqual((await ask(AUDITED, BANK.name)).data, [BANK.address4])
    assert.equal(await connects(hostOf(AUDITED), UNLEARNED), true)
    assert.equal((await dig(hostOf(AUDITED), OTHER_DNS_4, SHOP.name)).status, 'NOERROR')
    assert.ok((await namegate.stat('verdict_audit')) - before >= 2)
    await sleep(EVENTS_MS)
    const told = (await flows('audit')).filter(({ endpoint }) => endpoint === 'pod4')
    assert.ok(told.some(({ kind, name }) => kind === 'audited' && name === BANK.name))
    const packets = told.filter(({ kind }) => kind === 'audit')
    for (const [peer, port] of [
      [UNLEARNED, 80],
      [OTHER_DNS_4, 53],
    ]) {
      assert.ok(
        packets.some((flow) => flow.peer === peer && flow.port === port),
        `${peer}:${port} is among ${JSON.stringify(packets)}`,
      )
    }
  })

  it('lets every endpoint pass while the node is audited, and none afterwards', async () => {
    assert.equal((await namegate.run('audit', 'on', '--node')).code, 0)
    assert.deepEqual(await askResolvers(hostOf(NAMED)), allResolvers('NOERROR'))
    assert.deepEqual((await ask(NAMED, BANK.name)).data, [BANK.address4])
    assert.equal(await connects(hostOf(DENIED), SHOP.address4), true)
    await sleep(EVENTS_MS)
    const told = await flows('audit')
    assert.ok(told.some((flow) => flow.endpoint === 'pod0' && flow.peer === OTHER_DNS_4))
    assert.ok(told.some((flow) => flow.endpoint === 'pod0' && flow.name === BANK.name))
    assert.ok(told.some((flow) => flow.endpoint === 'pod3' && flow.peer === SHOP.address4))

    assert.equal((await namegate.run('audit', 'off', '--node')).code, 0)
    assert.equal((await ask(NAMED, BANK.name)).ede, 15)
    assert.deepEqual(await askResolvers(hostOf(NAMED)), allResolvers('no answer'))
    assert.equal(await connects(hostOf(DENIED), SHOP.address4), false)
  })
})
