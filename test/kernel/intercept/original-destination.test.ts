// With `upstreams.original-destination`, namegate asks the server that the pod asked, and the answer has that server's address. Two servers
// give one name different addresses. Policy decides which servers a pod can ask, and `trusted` from which namegate learns. An answer of
// another server opens nothing. UDP and TCP, IPv4 and IPv6.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { DNS_4, DNS_6, OTHER_DNS_4, podLab, startHelper } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? false

const NAME = 'www.shop.test'
/** The address that each server returns for the name. */
const OF_FIRST = '198.18.40.1'
const OF_OTHER = '198.18.41.1'
/** A server that policy admits and `trusted` does not list, and one that policy does not admit. */
const UNTRUSTED = '192.0.2.55'
const UNTRUSTED_SAYS = '198.18.42.1'
const NOT_ADMITTED = '192.0.2.56'
const TRANSPORTS = ['+notcp', '+tcp'] as const

const DNS =
  "toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*.shop.test' }] } }]"
const SERVERS = `toCIDR: [${DNS_4}/32, ${OTHER_DNS_4}/32, ${UNTRUSTED}/32, '${DNS_6}/128']`
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: pod1 } }
  egress:
    - { ${SERVERS}, ${DNS} }
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`

/** Replaces the lab's upstreams in the config file. */
function chooseUpstreams(file: string, untrusted: 'refuse' | 'pass'): void {
  const trusted = `[${DNS_4}/32, ${OTHER_DNS_4}/32, '${DNS_6}/128']`
  const text = readFileSync(file, 'utf8').replace(
    /^upstreams: \{ (.*) \}$/m,
    `upstreams: { $1, original-destination: true, trusted: ${trusted}, untrusted: ${untrusted} }`,
  )
  writeFileSync(file, text)
}

describe('namegate with upstreams.original-destination', { skip, concurrency: false }, () => {
  const lab = podLab()
  const { internet } = lab
  const pod = lab.pods[0]!.host
  const options = {
    policies: { 'shop.yaml': POLICY },
    endpoints: [
      `{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: pod1 }, interface: lxc1 }`,
    ],
    listenerItems: ['{ port: 10053, mode: tproxy }'],
    config: 'intercept: { on-start: true }',
  }
  const namegate = new Namegate(lab, options)

  /** The data or the status of the answer, and its extended error. */
  async function dig(server: string, transport: string, name = NAME): Promise<string> {
    const args = ['+tries=1', '+time=5', '+noall', '+comments', '+answer', `@${server}`, transport]
    const { stdout } = await pod.run('dig', [...args, name])
    const status = /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
    const data = / A (\S+)/.exec(stdout.replaceAll(/\s+/g, ' '))?.[1]
    const ede = /EDE: (\d+)/.exec(stdout)?.[1]
    return data ?? (ede === undefined ? status : `${status} ${ede}`)
  }

  async function connects(address: string): Promise<boolean> {
    const script = `exec 3<>/dev/tcp/${address}/80`
    return (await pod.run('timeout', ['0.5', 'bash', '-c', script])).code === 0
  }

  async function bothWays(server: string, name?: string): Promise<readonly string[]> {
    return await Promise.all(TRANSPORTS.map(async (each) => await dig(server, each, name)))
  }

  before(async () => {
    const serve = async (address: string, data: string) => {
      const zones = JSON.stringify({ names: { [NAME]: [data] } })
      await startHelper(internet, 'nameserver.ts', [address, '53', zones])
    }
    for (const address of [UNTRUSTED, NOT_ADMITTED]) {
      internet.ip('address', 'add', `${address}/24`, 'dev', 'eth0')
    }
    await serve(`${DNS_4},${DNS_6}`, OF_FIRST)
    await serve(OTHER_DNS_4, OF_OTHER)
    await serve(`${UNTRUSTED},${NOT_ADMITTED}`, UNTRUSTED_SAYS)
    await lab.startWebServer()
    chooseUpstreams(namegate.configFile, 'refuse')
    await namegate.start({ attached: ['lxc1'] })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('forwards to the asked server, and enforces its answer', async () => {
    assert.deepEqual(await bothWays(DNS_4), [OF_FIRST, OF_FIRST])
    assert.deepEqual(await bothWays(DNS_6), [OF_FIRST, OF_FIRST])
    assert.equal(await connects(OF_FIRST), true)
    assert.equal(await connects(OF_OTHER), false, 'the pod has not asked that server yet')
    assert.deepEqual(await bothWays(OTHER_DNS_4), [OF_OTHER, OF_OTHER])
    assert.equal(await connects(OF_OTHER), true)
  })

  it('refuses a server that policy does not admit, and a name that policy does not allow', async () => {
    assert.deepEqual(await bothWays(NOT_ADMITTED), ['REFUSED 18', 'REFUSED 18'])
    assert.deepEqual(await bothWays(DNS_4, 'www.bank.test'), ['REFUSED 15', 'REFUSED 15'])
  })

  it('refuses a server that is not trusted', async () => {
    assert.deepEqual(await bothWays(UNTRUSTED), ['REFUSED 18', 'REFUSED 18'])
    assert.equal(await connects(UNTRUSTED_SAYS), false)
  })

  it('passes on the answer of an untrusted server if configured, and learns nothing', async () => {
    await namegate.stop()
    namegate.writeConfig(options)
    chooseUpstreams(namegate.configFile, 'pass')
    await namegate.start({ attached: ['lxc1'] })
    assert.deepEqual(await bothWays(UNTRUSTED), [UNTRUSTED_SAYS, UNTRUSTED_SAYS])
    assert.equal(await connects(UNTRUSTED_SAYS), false)
    assert.deepEqual(await bothWays(NOT_ADMITTED), ['REFUSED 18', 'REFUSED 18'])
    assert.deepEqual(await bothWays(OTHER_DNS_4), [OF_OTHER, OF_OTHER])
    assert.equal(await connects(OF_OTHER), true)
  })
})
