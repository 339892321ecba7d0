// Another program changes the table of a running daemon in every possible way. The daemon finds and undoes each change, counts it in status
// and metrics and logs it, while names are asked and answered. Times are printed. NAMEGATE_FOREIGN=100000 learns that many addresses.

import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import {
  ForeignTable,
  foreignChanges,
  type ForeignChange,
} from '../../support/labs/foreign-changes.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, startHelperNow, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import { readExposition } from '../../support/nodes/metrics.ts'
import { canUseSteadyDns, SteadyDns, type LoadResult } from '../../support/peers/steady-dns.ts'

const skip = canUseLab() ?? nftablesMaker.unavailable ?? canUseSteadyDns() ?? false
const COUNT = Number(process.env['NAMEGATE_FOREIGN'] ?? 300)
/** Names that one process asks. */
const PART = 5000
const LIMIT_MS = 30_000
/** The pause between two looks. Each look is a process, which takes time from the daemon. */
const LOOK_MS = 50
const RATE = 50
/** A query that a change drops, such as one of the sources, is asked again. */
const RETRY_MS = 1000
const REPAIRED = 'namegate_datapath_repaired_entries_total'
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toFQDNs: [{ matchPattern: '*.c0.test' }, { matchPattern: '**.bulk.test' }]
    - toCIDR: [198.18.0.0/16, 198.18.7.0/24, '2001:db8:80::/48', '2001:db8:80:7::/64']
      toPorts: [{ ports: [{ port: '443', protocol: TCP }, { port: '8000', endPort: 8100 }] }]
`

describe(
  'a daemon whose nftables table another program changes',
  {
    skip,
    timeout: COUNT > PART ? 1_200_000 : 280_000,
  },
  () => {
    let lab: PodLab
    let pod: Pod
    let namegate: Namegate
    let table: ForeignTable
    let steady: SteadyDns

    before(async () => {
      lab = podLab()
      const [first] = lab.pods
      assert.ok(first)
      pod = first
      steady = new SteadyDns()
      const names = COUNT * 2
      namegate = new Namegate(lab, {
        policies: { 'shop.yaml': POLICY },
        endpoints: [ENDPOINT],
        datapath: '{ kind: nftables }',
        config: `metrics: { port: 9465 }
limits: { names-per-wildcard: ${names}, pairs-per-endpoint: ${names}, pairs: ${names} }
dns: { hold: { limit: 10s } }`,
      })
      const fresh = { 'bulk.test': { first4: '100.64.0.1', ttl: 86_400 } }
      await lab.startNameServer({ fresh: { ...fresh, 'c0.test': { first4: '100.80.0.1' } } })
      await namegate.start({ attached: [] })
      for (let i = 0; i * PART < COUNT; i++) {
        const suffix = `s${i}.bulk.test`
        const args = [pod.gateway4, suffix, `${Math.min(PART, COUNT - i * PART)}`]
        const asker = startHelperNow(pod.host, 'burst-asker.ts', args)
        assert.ok((await asker.ended(120_000))?.stdout.includes(`answered ${args[2]}`))
      }
      // Consecutive addresses, as the name server gives them. None expires during the test.
      const learned = Array.from({ length: 8 }, (_, i) => `100.64.0.${i + 10}`)
      table = new ForeignTable(lab.node, learned)
    })

    after(async () => {
      await namegate.close()
      await lab.close()
    })

    async function repaired(): Promise<number> {
      const { stdout } = await lab.node.run('curl', ['-s', 'http://127.0.0.1:9465/metrics'])
      return readExposition(stdout).samples.get(REPAIRED) ?? NaN
    }

    /** The present text of what a change affects. */
    async function seen({ key, object }: ForeignChange): Promise<string> {
      if (key !== undefined) return await table.get('exact4', await key(table))
      if (object !== undefined) return (await table.elements(object)).join('\n')
      return await table.structure()
    }

    async function until(what: () => string, isSo: () => Promise<boolean>): Promise<number> {
      const from = performance.now()
      while (!(await isSo())) {
        assert.ok(performance.now() - from < LIMIT_MS, what())
        await sleep(LOOK_MS)
      }
      return performance.now() - from
    }

    /** Asks names while `run` runs. Every name is answered. */
    async function asked(context: TestContext, run: () => Promise<void>): Promise<void> {
      let isOver = false
      const results: LoadResult[] = []
      const asking = (async () => {
        for (let i = 0; !isOver; i++) {
          const clients = [{ host: pod.host, server: pod.gateway4 }]
          results.push(await steady.load(clients, RATE, 5, RETRY_MS))
        }
      })()
      try {
        await run()
      } finally {
        isOver = true
        await asking
      }
      const sum = (of: (each: LoadResult) => number): number =>
        results.reduce((total, each) => total + of(each), 0)
      context.diagnostic(`asked ${sum(({ sent }) => sent)}, slowest of each run:`)
      context.diagnostic(results.map(({ maxMs }) => `${Math.round(maxMs)} ms`).join(', '))
      const unanswered = results.filter(({ noerror, sent }) => noerror !== sent)
      assert.deepEqual(unanswered, [], 'every name is answered')
    }

    async function isVerified(): Promise<void> {
      const { code, stdout, stderr } = await namegate.run('datapath', 'verify')
      assert.equal(code, 0, `${stdout}${stderr}`)
    }

    it('undoes every change of every set, chain and rule, counts it and logs it', async (context) => {
      await asked(context, async () => {
        const slow: string[] = []
        let slowest = 0
        for (const change of foreignChanges()) {
          const good = await seen(change)
          const [count, said] = [await repaired(), namegate.daemon.stderr.length]
          await table.nft(await change.script(table))
          let now = ''
          const ms = await until(
            () => `${change.title}: undone; found ${now}, expected ${good}`,
            async () => (now = await seen(change)) === good,
          )
          slowest = Math.max(slowest, ms)
          if (ms > 300) slow.push(`${change.title} ${Math.round(ms)} ms`)
          const tells = (): boolean => namegate.daemon.stderr.slice(said).includes(change.named)
          await until(
            () => `${change.title}: told`,
            async () => tells(),
          )
          await until(
            () => `${change.title}: counted`,
            async () => (await repaired()) > count,
          )
        }
        context.diagnostic(
          `${COUNT} addresses: slowest ${Math.round(slowest)} ms; ${slow.join(', ')}`,
        )
      })
      await isVerified()
      const { datapath } = (await namegate.status()) as { datapath: { repaired: number } }
      assert.equal(datapath.repaired, await repaired())
    })

    it('answers while two programs change the table again and again, and ends with the right table', async (context) => {
      const loops = [
        'add element inet namegate exact4 { 0x0 . 203.0.113.9 : 0x0 . 0x1000000 . 0x0 . 0x9 }',
        `delete element inet namegate exact4 { ${table.learned(4)} }`,
        'insert rule inet namegate in_from accept',
        'add element inet namegate unenforced { 0x1 }',
      ]
      const good = await table.structure()
      await asked(context, async () => {
        const script = loops.map((each) => `nft '${each}' 2>/dev/null`).join('; ')
        const line = `end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do ${script}; done`
        await Promise.all([1, 2].map(async () => await lab.node.run('sh', ['-c', line])))
        const isRight = async (): Promise<boolean> =>
          (await table.structure()) === good &&
          (await table.get('exact4', '0x0 . 203.0.113.9')) === '' &&
          (await table.get('exact4', table.learned(4))) !== '' &&
          (await table.elements('unenforced')).length === 0
        const ms = await until(() => 'right after two writers', isRight)
        context.diagnostic(`right ${Math.round(ms)} ms after the last change`)
      })
      await isVerified()
    })
  },
)
