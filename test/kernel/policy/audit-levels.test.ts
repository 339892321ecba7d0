// Audit at its four levels with real packets, over eBPF and nftables. What only an audited policy denies passes, and is recorded with the
// policy, the names, the endpoint and its labels. What another policy denies is dropped. Settings made at run time survive a restart, and
// override the files until they are reset.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFields, type Fields } from '../../../src/cli/fields.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { http } from '../../support/nodes/admin.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const SHOP = { name: 'www.shop.test', address: '198.18.40.1' }
const OTHER = { name: 'www.other.test', address: '198.18.66.6' }
const BARE = '198.18.77.7'
const PORT = 80
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"

const DNS = (pattern: string): string =>
  `- toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '${pattern}' }] } }]`

/** Allows only the shop, and denies a bare address by name. */
const AUDITED = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: tried, annotations: { namegate.io/audit: "true" } }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    ${DNS('*.shop.test')}
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
  egressDeny:
    - toCIDR: [${BARE}/32]
`
/** The same policy without audit. */
const STRICT = AUDITED.replace(/, annotations.*}/, ' }').replace('tried', 'strict')
/** Allows every name, and the bare address. */
const WIDE = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: wide }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    ${DNS('*')}
    - toFQDNs: [{ matchPattern: '*' }]
    - toCIDR: [${BARE}/32]
`

const VARIANTS = [
  { title: 'ebpf', datapath: undefined, skip: canUseNamegate() },
  {
    title: 'nftables',
    datapath: '{ kind: nftables }',
    skip: canUseNamegate() ?? nftablesMaker.unavailable,
  },
] as const

for (const { title, datapath, skip } of VARIANTS) {
  describe(`audit over ${title}`, { skip: skip ?? false }, () => {
    let lab: PodLab
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      namegate = new Namegate(lab, {
        policies: { 'tried.yaml': AUDITED },
        endpoints: [ENDPOINT],
        ...(datapath === undefined ? {} : { datapath }),
      })
      const names = { [SHOP.name]: [SHOP.address], [OTHER.name]: [OTHER.address] }
      await Promise.all([lab.startNameServer({ names }), lab.startWebServer([PORT])])
      await start()
    })

    after(async () => {
      await namegate.close()
      await lab.close()
    })

    async function start(): Promise<void> {
      await namegate.start({ attached: [] })
      await until('the endpoint is enforced', async () => (await endpoint())['enforcing'] === true)
    }

    async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
      for (const late = performance.now() + 15_000; !(await isSo()); await sleep(50)) {
        assert.ok(performance.now() < late, `expected ${what}`)
      }
    }

    /** The API, because the test asks often. The commands are for people. */
    async function api(path: string, body?: object): Promise<string> {
      const socket = { socketPath: join(namegate.folder, 'admin.sock') }
      const post = { method: 'POST', body: JSON.stringify(body) }
      const { status, text } = await http(socket, path, body === undefined ? {} : post)
      assert.equal(status, 200, text)
      return text
    }

    async function endpoint(): Promise<Fields> {
      const rows: unknown = JSON.parse(await api('/v1/endpoints'))
      assert.ok(Array.isArray(rows) && isFields(rows[0]))
      return rows[0]
    }

    async function put(policies: Readonly<Record<string, string>>): Promise<void> {
      namegate.writePolicies(policies)
      const names = Object.keys(policies).map((file) => `default/${file.replace('.yaml', '')}`)
      await until('the policies in force', async () => {
        const row = await endpoint()
        const isRealized = row['policyRevision'] === row['realizedRevision']
        return isRealized && JSON.stringify(row['policies']) === JSON.stringify(names.sort())
      })
    }

    /** The status of the name server's answer. */
    async function ask(name: string): Promise<string> {
      const pod = lab.pods[0]!
      const { stdout } = await pod.host.run('dig', [
        `@${pod.gateway4}`,
        '+tries=2',
        '+time=3',
        name,
      ])
      return /status: (\w+)/.exec(stdout)?.[1] ?? stdout
    }

    async function reaches(address: string, seconds = '5'): Promise<boolean> {
      const connect = `exec 3<>/dev/tcp/${address}/${PORT}`
      return (await lab.pods[0]!.host.run('timeout', [seconds, 'bash', '-c', connect])).code === 0
    }

    /** Waits for a record of a kind about a name or an address, and returns the newest. */
    async function record(kind: string, field: 'name' | 'peer', value: string): Promise<Fields> {
      let found: Fields | undefined
      await until(`a record of ${value}`, async () => {
        const text = await api(`/v1/flows?verdict=${kind}`)
        const lines = text.split('\n').filter((line) => line !== '')
        const flows = lines.map((line): unknown => JSON.parse(line)).filter(isFields)
        found = flows.findLast((flow) => flow[field] === value)
        return found !== undefined
      })
      return found ?? {}
    }

    /** `POLICY:LINE` of the rules that denied it, or would have. */
    function placesIn(flow: Fields): readonly string[] {
      const rules: unknown = flow['rules']
      assert.ok(Array.isArray(rules))
      return rules.map((rule: unknown) =>
        isFields(rule) ? `${String(rule['policy'])}:${String(rule['line'])}` : '',
      )
    }

    it('passes and records what only an audited policy would deny', async () => {
      assert.equal(await ask(OTHER.name), 'NOERROR')
      assert.equal(await reaches(OTHER.address), true)
      const question = await record('audited', 'name', OTHER.name)
      const packet = await record('audit', 'peer', OTHER.address)
      for (const flow of [question, packet]) {
        assert.equal(flow['verdict'], 'audit')
        assert.equal(flow['endpoint'], 'pod1')
        assert.deepEqual(flow['endpointLabels'], ['external:app=shop'])
        assert.deepEqual(placesIn(flow), ['default/tried:6'])
      }
      assert.deepEqual(packet['names'], [OTHER.name])
      assert.equal(await ask(SHOP.name), 'NOERROR')
      assert.equal(await reaches(SHOP.address), true)
      assert.match(String((await endpoint())['reason']), /audit: policies default\/tried$/)
    })

    it("records what an audited deny rule would take from another policy's allow rule", async () => {
      await put({ 'tried.yaml': AUDITED, 'wide.yaml': WIDE })
      assert.equal(await reaches(BARE), true)
      const packet = await record('audit', 'peer', BARE)
      assert.deepEqual(placesIn(packet), ['default/tried:11'])
    })

    it('drops what a policy without audit denies, whatever an audited policy allows', async () => {
      await put({ 'tried.yaml': AUDITED, 'strict.yaml': STRICT })
      assert.equal(await ask(OTHER.name), 'REFUSED')
      assert.equal(await reaches(OTHER.address, '0.8'), false)
      const dropped = await record('drop', 'peer', OTHER.address)
      assert.deepEqual(placesIn(dropped), ['default/strict:6'])
      const refused = await record('denied', 'name', OTHER.name)
      assert.deepEqual(placesIn(refused), ['default/strict:6'])
    })

    it('applies run-time settings of endpoint, selector and node, also after a restart, until they are reset', async () => {
      const rows = [
        [{ scope: 'endpoint', name: 'pod1' }, /audit: run time; audit: policies/],
        [{ scope: 'selector', matchLabels: { app: 'shop' } }, /audit: run time, by selector; /],
        [{ scope: 'node' }, /audit: node, run time; /],
      ] as const
      for (const [scope, reason] of rows) {
        await api('/v1/audit', { ...scope, on: true })
        assert.match(String((await endpoint())['reason']), reason)
        assert.equal(await ask(OTHER.name), 'NOERROR', scope.scope)
        assert.equal(await reaches(OTHER.address), true, scope.scope)
        await api('/v1/audit', { ...scope, on: null })
        assert.equal(await reaches(OTHER.address, '0.8'), false, scope.scope)
      }
      const said = await namegate.run('audit', 'on', '--selector', 'app=shop')
      assert.equal(said.code, 0, said.stderr)
      await namegate.kill()
      assert.equal(await reaches(OTHER.address), true, 'without the daemon')
      await start()
      assert.equal(await reaches(OTHER.address), true, 'after a restart')
      const reset = await namegate.run('audit', 'reset', '--all')
      assert.equal(reset.code, 0, reset.stderr)
      assert.equal(await reaches(OTHER.address, '0.8'), false)
    })
  })
}
