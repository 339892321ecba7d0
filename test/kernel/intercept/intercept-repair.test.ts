// Another program removes parts of the interception of a running daemon: nftables rules, ip rules, routes. The daemon restores each, logs
// it once and counts it. What it cannot restore is in the log, in `status` and in `intercept show`.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBuilt } from '../../../src/native/native.ts'
import { outputIn, snapshot } from '../../support/labs/intercept-lab.ts'
import { canUseLab, type Host } from '../../support/labs/lab.ts'
import { DNS_6, OTHER_DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseLab() ?? (isBuilt('posix') ? false : 'the native part is not built')
/** A part is back after a second. The machine can be busy. */
const LIMIT_MS = 60_000
const NAME = 'www.shop.test'
const DATA = '198.18.40.1'
const ZONES = { names: { [NAME]: [DATA] } }
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: a }, interface: lxc1 }"
const REPAIRED = /removed parts of the interception: put back/g
const OURS = 'namegate_intercept'
const TABLE = `nft table inet ${OURS}`

/** The rules and routes of a host, without packet counters. */
function inForce(host: Host): string {
  return snapshot(host)
    .filter((line) => !/packets \d/.test(line))
    .join('\n')
}

async function answers(host: Host, server: string): Promise<boolean> {
  const args = ['+tries=3', '+time=1', '+short', `@${server}`, NAME]
  return (await host.run('dig', args)).stdout.trim() === DATA
}

/** A daemon whose interception is in force, and the log lines about its repairs. */
class Watched {
  readonly #host: Host
  readonly #namegate: Namegate
  readonly #good: string

  constructor(host: Host, namegate: Namegate) {
    this.#host = host
    this.#namegate = namegate
    this.#good = inForce(host)
  }

  /** Lines of the log about a repair. */
  get logged(): readonly string[] {
    const { stdout, stderr } = this.#namegate.daemon
    return `${stdout}${stderr}`.split('\n').filter((line) => line.search(REPAIRED) >= 0)
  }

  /** Removes a part, and waits until it is restored and one more line is in the log. */
  async takeAway(command: string): Promise<string> {
    const before = this.logged.length
    outputIn(this.#host, ...command.split(' '))
    const isBack = (): true | undefined => (inForce(this.#host) === this.#good ? true : undefined)
    const { daemon } = this.#namegate
    await daemon.until(isBack, `expected what was there before: ${command}`, LIMIT_MS)
    const line = await daemon.until(
      () => this.logged[before],
      `expected a line: ${command}`,
      LIMIT_MS,
    )
    assert.equal(this.logged.length, before + 1, command)
    return line
  }

  async state(): Promise<unknown> {
    return (await this.#namegate.status())['interception']
  }
}

describe('interception of which another program removes a part', { skip, timeout: 280_000 }, () => {
  let lab: PodLab
  before(async () => {
    lab = podLab({ pods: 2 })
    await lab.startNameServer(ZONES)
  })
  after(async () => await lab.close())

  describe('tproxy', () => {
    let namegate: Namegate
    let watched: Watched
    before(async () => {
      namegate = new Namegate(lab, {
        policies: {},
        endpoints: [ENDPOINT],
        listenerItems: ['{ port: 10053, mode: tproxy }'],
        datapath: '{ kind: memory }',
        config: 'intercept: { on-start: true }\nmetrics: { port: 9465 }',
      })
      await namegate.start({ attached: [] })
      watched = new Watched(lab.node, namegate)
    })
    after(async () => await namegate.close())

    const pod = (): Host => lab.pods[0]!.host

    async function metric(name: string): Promise<number> {
      const { stdout } = await lab.node.run('curl', ['-s', 'http://127.0.0.1:9465/metrics'])
      return Number(new RegExp(`^namegate_${name} (\\d+)$`, 'm').exec(stdout)?.[1])
    }

    /** Waits until the state matches. Until then the state does not change. */
    async function becomes(wanted: RegExp): Promise<void> {
      const from = await watched.state()
      for (let state = from; !wanted.test(String(state)); state = await watched.state()) {
        assert.equal(state, from)
        await sleep(50)
      }
    }

    /** The command that deletes the one rule of a chain that has these words. */
    function deletionOf(chain: string, words: string): string {
      const rules = outputIn(lab.node, 'nft', '-a', 'list', 'chain', 'inet', OURS, chain)
      const [, handle] = new RegExp(`${words} .*# handle (\\d+)`).exec(rules) ?? []
      return `nft delete rule inet ${OURS} ${chain} handle ${handle}`
    }

    it('restores each rule, route and table, and logs it once', async () => {
      const rows: readonly (readonly [taken: string | (() => string), told: string])[] = [
        ['ip rule del pref 53', 'ip -4 rule pref 53'],
        ['ip rule del pref 54', 'ip -4 rule pref 54'],
        ['ip route flush table 20039', 'ip -4 route local default'],
        ['ip -6 rule del pref 54', 'ip -6 rule pref 54'],
        ['ip -6 route flush table 20039', 'ip -6 route local default'],
        // Again at once, before the next look.
        ['ip -6 route flush table 20039', 'ip -6 route local default'],
        [`nft flush chain inet ${OURS} queries`, `nft chain inet ${OURS} queries (0 of 4 rules)`],
        [`nft flush chain bridge ${OURS} between`, `nft chain bridge ${OURS} between (0 of`],
        [() => deletionOf('take0', 'tproxy ip6'), `nft chain inet ${OURS} take0 (10 of 11 rules)`],
        [`nft delete table bridge ${OURS}`, `nft table bridge ${OURS}`],
        [`nft flush table bridge ${OURS}`, `nft chain bridge ${OURS} between (0 of`],
        ['nft delete table inet namegate_intercept', TABLE],
        // The daemon reads one table after the other, so it can miss only the second if the flush comes in between.
        ['nft flush ruleset', 'nft table '],
      ]
      for (const [row, told] of rows) {
        const taken = typeof row === 'string' ? row : row()
        const line = await watched.takeAway(taken)
        assert.ok(line.includes(told) && /warn/i.test(line), `${taken}: ${line}`)
      }
      assert.equal(await watched.state(), `in force; put back ${rows.length} times`)
      assert.equal(await metric('intercept_repairs_total'), rows.length)
      assert.equal(await metric('intercept_in_force'), 1)
      assert.ok(await answers(pod(), OTHER_DNS_4))
      assert.ok(await answers(pod(), DNS_6))
    })

    it('reports what of other programs redirects queries, and removes none of it', async () => {
      const before = watched.logged.length
      const rows: readonly (readonly [foreign: string, reason: RegExp])[] = [
        [
          'rule add pref 10 lookup 200',
          /ip rule "10: from all lookup 200" comes before ours: move it behind 55/,
        ],
        [
          '-6 rule add pref 20 fwmark 0x4e47 lookup 200',
          /ip rule "20: from all fwmark 0x4e47 lookup 200" takes packets with mark 0x4e47: give intercept.mark/,
        ],
        [
          'rule add pref 99 fwmark 0x4e47 lookup 200',
          /ip rule "99: .*" takes packets with mark 0x4e47: give intercept.mark/,
        ],
        [
          'route add 203.0.113.0/24 dev lo table 20039',
          /routing table 20039 has a route of another program \(203.0.113.0\/24 dev lo\)/,
        ],
      ]
      for (const [foreign, reason] of rows) {
        outputIn(lab.node, 'ip', ...foreign.split(' '))
        await becomes(/^not in force: Cannot intercept: /)
        assert.match(String(await watched.state()), reason)
        const { code, stdout, stderr } = await namegate.run('status', '--ready')
        assert.equal(code, 1)
        assert.match(`${stdout}${stderr}`, reason)
        const { stdout: log, stderr: more } = namegate.daemon
        assert.match(`${log}${more}`.replaceAll('\\', ''), reason)
        assert.equal(await metric('intercept_in_force'), 0)
        const undo = foreign.replace(' add ', ' del ').split(' ')
        outputIn(lab.node, 'ip', ...undo)
        await becomes(/^in force/)
      }
      assert.equal(watched.logged.length, before, 'nothing of ours was missing')
    })

    it('reports that it is not in force while routing cannot be restored, with the reason', async () => {
      outputIn(lab.node, 'ip', 'link', 'set', 'lo', 'down')
      await becomes(/^not in force: Cannot ip -6 route add local default/)
      const ready = await namegate.run('status', '--ready')
      assert.equal(ready.code, 1)
      assert.match(`${ready.stdout}${ready.stderr}`, /interception: not in force: Cannot ip /)
      const shown = await namegate.run('intercept', 'show')
      const { pid } = namegate.daemon
      assert.match(shown.stdout, /not in force: Cannot ip -6 route add local default/)
      assert.ok(shown.stdout.includes(`(according to the daemon, pid ${pid})`), shown.stdout)
      assert.match(shown.stdout, /^# tproxy .*: not in force: ip -6 route local .* missing$/m)
      const { stdout } = await namegate.run('intercept', 'show', '-o', 'json')
      const [row] = JSON.parse(stdout) as { inForce: boolean }[]
      assert.equal(row?.inForce, false)
      outputIn(lab.node, 'ip', 'link', 'set', 'lo', 'up')
      await namegate.daemon.untilOutput(/queries are intercepted[^]*queries are intercepted/)
      await becomes(/^in force/)
      assert.ok(await answers(pod(), OTHER_DNS_4))
    })
  })

  describe('redirect', () => {
    it('restores the table of a sidecar, and logs it once', async () => {
      // The pod whose queries the node does not intercept.
      const pod = lab.pods[1]!.host
      const namegate = new Namegate(
        { node: pod, pods: [] },
        {
          policies: {},
          endpoints: ['{ name: pod2, addresses: [10.20.2.2], labels: { app: a } }'],
          listenerItems: ['{ port: 5300, mode: redirect }'],
          datapath: '{ kind: memory }',
          config: 'intercept: { on-start: true }',
        },
      )
      try {
        await namegate.start({ attached: [] })
        const watched = new Watched(pod, namegate)
        const rows: readonly (readonly [taken: string, told: string])[] = [
          [`nft delete table inet ${OURS}`, TABLE],
          ['nft flush ruleset', TABLE],
          [`nft flush chain inet ${OURS} guard`, `nft chain inet ${OURS} guard (0 of`],
        ]
        for (const [taken, told] of rows) {
          const line = await watched.takeAway(taken)
          assert.ok(line.includes(told), line)
        }
        assert.equal(await watched.state(), 'in force; put back 3 times')
      } finally {
        await namegate.close()
      }
    })
  })
})
