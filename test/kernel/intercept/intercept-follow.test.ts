// Interception as the daemon runs it, over real rules. It notices when another program removes or replaces its rules or makes interfaces
// again, and the datapath never lets DNS pass without rules.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { systemClock } from '../../../src/core/clock.ts'
import type { InterceptedInterface } from '../../../src/datapath/abilities.ts'
import { Interception, type InterceptionOptions } from '../../../src/intercept/interception.ts'
import { Rules } from '../../../src/intercept/rules.ts'
import { until } from '../../support/peers/client.ts'
import { outputIn, runIn, snapshot, toolsIn } from '../../support/labs/intercept-lab.ts'
import { at, mkPlan } from '../../support/labs/intercept-plans.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const PLAN = mkPlan({ listeners: '{ port: 10053, mode: tproxy }' })
const OTHER = { ...PLAN, mark: 7 }

describe('Interception over real rules', { skip: canUseLab() ?? false }, () => {
  let lab: PodLab
  let flags: readonly InterceptedInterface[] = []
  let changes = false
  let routingChanged = false
  const open: Interception[] = []

  before(() => {
    lab = podLab()
  })
  after(async () => {
    for (const each of open) await each.stop()
    await lab.close()
  })

  function mkRules(): Rules {
    const sink = {
      read: () => flags,
      set: (list: readonly InterceptedInterface[]) => (flags = list),
    }
    return new Rules({ run: toolsIn(lab.node), flags: sink, forgetFlows: () => 0 })
  }

  function mkInterception(options: Partial<InterceptionOptions> = {}) {
    const said: string[] = []
    const say = (_fields: object, message: string) => void said.push(message)
    const interception = new Interception({
      plan: PLAN,
      onStart: true,
      onExit: 'closed',
      rules: mkRules(),
      alone: async (work) => await work(),
      changes: {
        hasChanged: () => {
          const [was] = [changes, (changes = false)]
          return was
        },
        hasRoutingChanged: () => {
          const [was] = [routingChanged, (routingChanged = false)]
          return was
        },
        hasGenerationChanged: () => false,
        listen: () => false,
        stop: () => undefined,
      },
      clock: systemClock,
      log: {
        debug: say,
        info: say,
        warn: say,
        error: say,
        limited: (_cause, fields, message) => say(fields, message),
        flush: () => undefined,
      },
      ...options,
    })
    open.push(interception)
    return { interception, said }
  }

  const indexOf = (name: string) =>
    Number(/^(\d+):/.exec(outputIn(lab.node, 'ip', '-o', 'link', 'show', name))?.[1])
  const indexes = () => flags.map(({ ifindex }) => ifindex)

  it('is off without a transparent listener', async () => {
    const { interception, said } = mkInterception({ plan: undefined })
    await interception.start(at())
    interception.placesChanged(at('lxc1'))
    await interception.stop()
    assert.deepEqual([interception.state, said], [{ kind: 'off' }, []])
  })

  it('adds rules at the start, and restores them after a flush of all rules', async () => {
    const { interception, said } = mkInterception()
    await interception.start(at('lxc1'))
    assert.deepEqual(interception.state, { kind: 'in-force', notes: [] })
    assert.deepEqual(indexes(), [indexOf('lxc1')])
    for (const command of ['flush ruleset', 'flush table inet namegate_intercept']) {
      assert.equal(runIn(lab.node, ['nft', ...command.split(' ')]).code, 0)
      flags = [{ ifindex: 4711, families: { 4: true, 6: true } }]
      changes = true
      await until('rules are back', () => indexes()[0] === indexOf('lxc1'))
      assert.match(outputIn(lab.node, 'nft', 'list', 'ruleset'), /tproxy ip to :10053/)
    }
    await interception.stop()
    assert.match(outputIn(lab.node, 'nft', 'list', 'ruleset'), /tproxy/, 'on-exit: closed')
    const putBack = 'another program removed parts of the interception: put back'
    assert.deepEqual(said, ['queries are intercepted', putBack, putBack])
    assert.equal(interception.counters.repairs, 2)
  })

  it('follows rules that another program added, and closes the datapath when they are removed', async () => {
    flags = []
    const { interception, said } = mkInterception({ onStart: false, onExit: 'open' })
    await interception.start(at('lxc1'))
    assert.equal(interception.state.kind, 'in-force', 'the rules of the test before')
    assert.deepEqual(indexes(), [indexOf('lxc1')])
    assert.equal(runIn(lab.node, ['nft', 'flush', 'ruleset']).code, 0)
    changes = true
    await until('the datapath is closed', () => flags.length === 0)
    await until('the state is absent', () => interception.state.kind === 'absent')
    assert.match(said.at(-1) ?? '', /not intercepted: namegate intercept up/)
    await mkRules().up(PLAN, at())
    interception.placesChanged(at('lxc1'))
    await until('an interface is added', () => indexes()[0] === indexOf('lxc1'))
    await interception.stop()
    assert.doesNotMatch(outputIn(lab.node, 'nft', 'list', 'ruleset'), /namegate/, 'on-exit: open')
    assert.deepEqual(flags, [])
  })

  it('restores the routing of such rules, and logs what was missing', async () => {
    await mkRules().up(PLAN, at('lxc1'))
    const before = snapshot(lab.node)
    const { interception, said } = mkInterception({ onStart: false })
    await interception.start(at('lxc1'))
    outputIn(lab.node, 'ip', 'rule', 'del', 'pref', '54')
    outputIn(lab.node, 'ip', '-6', 'route', 'flush', 'table', '20039')
    routingChanged = true
    await until('it is logged', () => said.length === 2)
    assert.match(said[1] ?? '', /removed parts of the interception: put back$/)
    assert.deepEqual(snapshot(lab.node), before)
    await interception.stop()
    await mkRules().down()
  })

  it('leaves rules of another config, and reports them', async () => {
    await mkRules().up(OTHER, at('lxc1'))
    const were = flags
    const { interception, said } = mkInterception({ onStart: false })
    await interception.start(at('lxc1'))
    assert.equal(interception.state.kind, 'other')
    assert.match(said.join(), /rules of another config/)
    assert.equal(flags, were)
    await interception.stop()
    await mkRules().down()
  })

  it('passes an interface that was made again to the datapath', async () => {
    const { interception } = mkInterception()
    await interception.start(at('made0'))
    assert.deepEqual(indexes(), [])
    const seen: number[] = []
    for (let round = 0; round < 2; round++) {
      lab.node.ip('link', 'add', 'made0', 'type', 'veth', 'peer', 'name', 'made1')
      changes = true
      await until('the interface is in the flags', () => indexes()[0] === indexOf('made0'))
      seen.push(...indexes())
      lab.node.ip('link', 'del', 'made0')
      changes = true
      await until('the flags are empty', () => flags.length === 0)
    }
    assert.notEqual(seen[0], seen[1])
    await interception.stop()
    await mkRules().down()
  })

  it('reports that it cannot update the rules, and the datapath stays closed', async () => {
    const { interception } = mkInterception()
    await interception.start(at('lxc1'))
    outputIn(lab.node, 'ip', 'rule', 'add', 'pref', '9', 'lookup', '200')
    assert.equal(runIn(lab.node, ['nft', 'flush', 'ruleset']).code, 0)
    changes = true
    await until('it fails', () => interception.state.kind === 'failed')
    assert.match(JSON.stringify(interception.state), /comes before ours/)
    assert.deepEqual(flags, [])
    outputIn(lab.node, 'ip', 'rule', 'del', 'pref', '9')
    changes = true
    await until('it is in force again', () => interception.state.kind === 'in-force')
    await interception.stop()
    await mkRules().down()
  })
})
