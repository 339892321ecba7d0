// Adding rules to a real kernel and removing them: all or nothing, repeated without effect, with nothing left, and without a change where a
// rule of another program is in the way. The other tests of this folder check what the rules do to packets.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { InterceptedInterface } from '../../../src/datapath/abilities.ts'
import type { InterceptPlan } from '../../../src/intercept/plan.ts'
import type { EndpointPlaces } from '../../../src/intercept/targets.ts'
import { aboutOf, Rules } from '../../../src/intercept/rules.ts'
import type { RunTool } from '../../../src/intercept/tools.ts'
import { outputIn, runIn, settings, snapshot, toolsIn } from '../../support/labs/intercept-lab.ts'
import { at, mkPlan } from '../../support/labs/intercept-plans.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { bridgeLab, type BridgeLab } from '../../support/labs/lab-bridge.ts'

const TPROXY = mkPlan({ listeners: '{ port: 10053, mode: tproxy }' })
const BOTH = mkPlan({
  listeners: "{ port: 10053, mode: tproxy, interfaces: ['veth*'] }, { port: 5300, mode: redirect }",
})
const REDIRECT = mkPlan({ listeners: '{ port: 5300, mode: redirect }' })

describe('Rules in their own network namespace', { skip: canUseLab() ?? false }, () => {
  const lab: BridgeLab = bridgeLab()
  const { node } = lab
  after(async () => await lab.close())

  /** Flags as the datapath holds them, and every value that was set. */
  function mkFlags() {
    const set: (readonly number[])[] = []
    let now: readonly InterceptedInterface[] = []
    return {
      set,
      flags: {
        read: () => now,
        set: (list: readonly InterceptedInterface[]) => {
          now = list
          set.push(list.map(({ ifindex }) => ifindex))
        },
      },
    }
  }

  function mkRules(run: RunTool = toolsIn(node), { flags } = mkFlags()) {
    return new Rules({ run, flags, forgetFlows: () => 0 })
  }

  const about = async (rules: Rules) => (await rules.inForce())?.about

  test('up then down leaves rules, routing and settings as they were', async () => {
    const [before, set] = [snapshot(node), settings(node)]
    assert.ok(set.length > 100)
    const rules = mkRules()
    for (const plan of [TPROXY, REDIRECT, BOTH]) {
      assert.deepEqual(await rules.up(plan, at('veth1')), [])
      assert.equal(await about(rules), aboutOf(plan))
      assert.notDeepEqual(snapshot(node), before)
      assert.deepEqual(await rules.down(), { removed: true, notes: [] })
      assert.deepEqual(snapshot(node), before)
    }
    assert.deepEqual(settings(node), set)
    assert.deepEqual(await rules.down(), { removed: false, notes: [] }, 'down without up')
    assert.equal(await about(rules), undefined)
  })

  test('the kernel forgets connections before their packets are dropped, and before their translation ends', async () => {
    const chains: (readonly string[])[] = []
    const forgetFlows = (): number => {
      const rules = outputIn(node, 'nft', 'list', 'ruleset')
      const of = (chain: string, rule: string) =>
        new RegExp(`chain ${chain} {(?:(?!\\n\\t})[^])*${rule}`)
      const found = {
        redirects: of('turn', 'redirect to'),
        drops: of('guard', ' drop'),
        translates: /hook output priority -110/,
      }
      chains.push(Object.entries(found).flatMap(([name, text]) => (text.test(rules) ? [name] : [])))
      return 0
    }
    const rules = new Rules({ run: toolsIn(node), flags: mkFlags().flags, forgetFlows })
    const all = ['redirects', 'drops', 'translates']
    await rules.up(REDIRECT, at())
    assert.deepEqual(chains.splice(0), [['redirects', 'translates'], all])
    await rules.up(REDIRECT, at())
    assert.deepEqual(chains.splice(0), [all], 'DNS is never open between two plans')
    await rules.down()
    assert.deepEqual(chains, [['translates']])
  })

  test('up again changes nothing, and another plan replaces the first', async () => {
    const before = snapshot(node)
    const rules = mkRules()
    await rules.up(BOTH, at())
    const once = snapshot(node)
    await rules.up(BOTH, at())
    assert.deepEqual(snapshot(node), once)
    await rules.up({ ...TPROXY, mark: 0x99, table: 77 }, at())
    assert.match(outputIn(node, 'ip', 'rule'), /fwmark 0x99 lookup 77/)
    assert.doesNotMatch(outputIn(node, 'ip', 'rule'), /0x4e47/)
    await rules.up(REDIRECT, at())
    assert.doesNotMatch(outputIn(node, 'ip', 'rule'), /fwmark/)
    assert.doesNotMatch(outputIn(node, 'nft', 'list', 'ruleset'), /table bridge/)
    await rules.down()
    assert.deepEqual(snapshot(node), before)
  })

  test('up that fails at a step leaves everything as it was', async () => {
    const run = toolsIn(node)
    let [writes, failing] = [0, 0]
    const counted: RunTool = async (tool, args, input) => {
      const isWrite = args.includes('add') || args.includes('del') || args.join(' ') === '-f -'
      if (isWrite && ++writes === failing) return { code: 1, stdout: '', stderr: 'Error: planted' }
      return await run(tool, args, input)
    }
    for (const before of [undefined, { ...TPROXY, mark: 5, table: 6 }]) {
      if (before !== undefined) await mkRules().up(before, at('veth1'))
      const were = snapshot(node)
      ;[writes, failing] = [0, 0]
      await mkRules(counted).up(TPROXY, at('veth1'))
      const last = writes
      assert.ok(last >= 9, `writes: ${last}`)
      await mkRules().down()
      if (before !== undefined) await mkRules().up(before, at('veth1'))
      for (failing of [2, last - 3, last]) {
        writes = 0
        const { flags } = mkFlags()
        await assert.rejects(
          mkRules(counted, { flags, set: [] }).up(TPROXY, at('veth1')),
          /planted/,
        )
        assert.deepEqual(snapshot(node), were, `write ${failing} of ${last}`)
        assert.deepEqual(flags.read(), [])
      }
    }
    await mkRules().down()
  })

  test('up that fails in the datapath removes the rules', async () => {
    const before = snapshot(node)
    const flags = {
      read: () => [],
      set: (list: readonly InterceptedInterface[]) => {
        if (list.length > 0) throw new Error('planted')
      },
    }
    await assert.rejects(
      mkRules(toolsIn(node), { flags, set: [] }).up(TPROXY, at('veth1')),
      /planted/,
    )
    assert.deepEqual(snapshot(node), before)
  })

  test('up names rules of other programs that are in the way, and changes nothing', async () => {
    const rows: readonly (readonly [make: string, undo: string, reason: RegExp])[] = [
      [
        'ip rule add pref 10 lookup 200',
        'ip rule del pref 10',
        /ip rule "10: .*" comes before ours: move it behind 55/,
      ],
      [
        'ip -6 rule add pref 99 fwmark 0x4e47 lookup 9',
        'ip -6 rule del pref 99',
        /give intercept.mark a free value/,
      ],
      [
        'ip rule add pref 99 lookup 20039',
        'ip rule del pref 99',
        /give intercept.table a free number/,
      ],
      [
        'ip route add 203.0.113.0/24 dev br0 table 20039',
        'ip route flush table 20039',
        /routing table 20039 has a route of another program \(203.0.113.0\/24 dev br0\)/,
      ],
      [
        'iptables -t mangle -A PREROUTING -p udp --dport 53 -j TPROXY --on-port 9 --tproxy-mark 1',
        'nft delete table ip mangle',
        /"ip mangle PREROUTING" sends port 53 elsewhere \(tproxy\): remove it/,
      ],
    ]
    for (const [make, undo, reason] of rows) {
      outputIn(node, ...make.split(' '))
      const before = snapshot(node)
      await assert.rejects(mkRules().up(TPROXY, at()), (error: Error) => {
        assert.equal(error.name, 'UnavailableError')
        assert.match(error.message, reason)
        assert.doesNotMatch(error.message, /\n/)
        return true
      })
      assert.deepEqual(snapshot(node), before, make)
      outputIn(node, ...undo.split(' '))
    }
  })

  test('up warns about a firewall that drops incoming packets', async () => {
    const rules =
      'table inet fw { chain input { type filter hook input priority 0; policy drop; }; }'
    assert.equal(runIn(node, ['nft', '-f', '-'], rules).code, 0)
    const [note] = await mkRules().up(TPROXY, at())
    assert.match(note ?? '', /table "inet fw" drops what comes in .*: admit port 53/)
    await mkRules().down()
    outputIn(node, 'nft', 'delete', 'table', 'inet', 'fw')
  })

  test('up without privilege reports it in one line', async () => {
    const weak = ['setpriv', '--bounding-set=-net_admin', '--reuid=65534', '--clear-groups']
    const run: RunTool = async (tool, args, input) =>
      await Promise.resolve(runIn(node, [...weak, tool, ...args], input))
    await assert.rejects(mkRules(run).up(TPROXY, at()), (error: Error) => {
      assert.match(
        error.message,
        /^Cannot use nft in this network namespace: .*: run as root or with CAP_NET_ADMIN$/,
      )
      return error.name === 'UnavailableError'
    })
  })

  test('update follows interfaces, closes the datapath before and opens it after', async () => {
    const flags = mkFlags()
    const rules = mkRules(toolsIn(node), flags)
    const [one, two] = lab.pods.map((pod) => indexOf(pod.interface))
    await rules.up(TPROXY, at('veth1', 'later0'))
    assert.deepEqual(flags.set, [[one]])
    assert.deepEqual(await setsOf(rules), {
      'inet interfaces0': ['br0', 'later0', 'veth1'],
      'inet bridges0': ['br0'],
      'bridge interfaces0': ['later0', 'veth1'],
    })
    await change(rules, TPROXY, at('veth2'))
    assert.deepEqual(flags.set.slice(1), [[], [two]], 'off before, on after')
    assert.deepEqual(await setsOf(rules), {
      'inet interfaces0': ['br0', 'veth2'],
      'inet bridges0': ['br0'],
      'bridge interfaces0': ['veth2'],
    })
    await change(rules, TPROXY, at('veth2'))
    assert.equal(flags.set.length, 3, 'equal flags are not written again')
    await rules.down()
    assert.deepEqual(flags.set.at(-1), [])
  })

  test('keep restores damaged parts of the plan, and leaves the others', async () => {
    const rules = mkRules()
    await rules.up(BOTH, at())
    const good = snapshot(node)
    const handles = (): string => outputIn(node, 'nft', '-a', 'list', 'ruleset')
    const before = handles()
    assert.deepEqual(await rules.keep(BOTH, at()), [])
    assert.equal(handles(), before, 'nothing was written')
    const inet = 'inet namegate_intercept'
    const damages: readonly (readonly [command: string, damage: RegExp])[] = [
      [`nft flush chain ${inet} turn`, / turn \(0 of \d+ rules\)$/],
      [`nft flush set ${inet} servers4`, /^nft set inet namegate_intercept servers4 \(changed\)$/],
      [`nft insert rule ${inet} queries accept`, / queries \(\d+ of \d+ rules\)$/],
      [`nft flush chain ${inet} seals`, /^nft chain inet namegate_intercept seals$/],
      ['nft delete table bridge namegate_intercept', /^nft table bridge namegate_intercept$/],
    ]
    for (const [command, damage] of damages) {
      outputIn(node, ...command.split(' '))
      const found = (await rules.inForce())?.damage ?? []
      assert.equal(found.length, 1, `${command}: ${found.join(', ')}`)
      assert.match(found.join(), damage)
      assert.deepEqual(await rules.keep(BOTH, at()), [])
      assert.deepEqual(snapshot(node), good, command)
      assert.deepEqual((await rules.inForce())?.damage, [])
    }
    await rules.down()
  })

  test('up passes the address of the bridge to the datapath', async () => {
    const { flags } = mkFlags()
    await mkRules(toolsIn(node), { flags, set: [] }).up(BOTH, at())
    const [{ address = '' } = {}] = JSON.parse(
      outputIn(node, 'ip', '-j', 'link', 'show', 'br0'),
    ) as { address?: string }[]
    const mac = Uint8Array.from(address.split(':'), (octet) => Number.parseInt(octet, 16))
    assert.deepEqual(
      flags.read().map(({ bridgeMac }) => bridgeMac),
      [mac, mac],
    )
    await mkRules().down()
  })

  async function change(rules: Rules, plan: InterceptPlan, endpoints: EndpointPlaces) {
    const found = await rules.inForce()
    assert.ok(found)
    await rules.update(plan, endpoints, found)
  }

  async function setsOf(rules: Rules): Promise<object> {
    return Object.fromEntries((await rules.inForce())?.sets ?? [])
  }

  function indexOf(name: string): number {
    const [link] = JSON.parse(outputIn(node, 'ip', '-j', 'link', 'show', name)) as {
      ifindex: number
    }[]
    return link?.ifindex ?? 0
  }
})
