// Runs the steps of a scenario one after the other over one world. All effects of a step that are due at this moment of fake time happen
// before the next step. Any failure names file and line.

import assert from 'node:assert/strict'
import { formatFault } from '../../../src/core/errors.ts'
import { formatAddress, type Prefix } from '../../../src/core/ip.ts'
import { parseDuration } from '../../../src/core/quantity.ts'
import { parseEndpoints } from '../../../src/endpoints/file.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { prefixOf } from '../../support/nodes/node.ts'
import { octetsOf } from './addresses.ts'
import { checkDatapath, checkPromise } from './check.ts'
import { countersOf, EXPECTATIONS } from './expect.ts'
import { close, open } from './packets.ts'
import { parseScenario, ScenarioFault, type Step } from './parse.ts'
import { World } from './world.ts'
import { TYPES } from './zone.ts'

type Runner = (world: World, step: Step) => void

const MODES = ['enforce', 'audit', 'bypass'] as const
const REFUSALS = ['prefix', 'policy'] as const

export function runScenario(text: string, file: string): void {
  const { steps } = parseScenario(text, file)
  const isSetting = ({ verb }: Step): boolean => verb === 'CONFIG' || verb === 'NODE'
  const first = steps.findIndex((step) => !isSetting(step))
  const settings = steps.slice(0, Math.max(0, first))
  const world = makeWorld(settings)
  const run = new Run(world)
  for (const step of steps.slice(settings.length)) run.step(step)
  if (!run.expected) throw new ScenarioFault({ file, line: 1 }, 'expects nothing')
}

function makeWorld(settings: readonly Step[]): World {
  const nodeAddresses = settings.flatMap(({ verb, words }): Prefix[] =>
    verb === 'NODE' ? words.map(prefixOf) : [],
  )
  const configs = settings.filter(({ verb }) => verb === 'CONFIG').map(({ block }) => block)
  const world = new World(configs.join('\n'), nodeAddresses)
  world.clients.onReply = (reply, to) => checkPromise(world, reply, to)
  return world
}

class Run {
  /** Whether a step has compared anything. */
  expected = false
  readonly #world: World
  /** The values of counters when they were last checked. */
  readonly #seen = new Map<string, number>()

  constructor(world: World) {
    this.#world = world
  }

  step(step: Step): void {
    try {
      this.#run(step)
      this.#world.settle()
      checkDatapath(this.#world)
    } catch (cause) {
      if (cause instanceof ScenarioFault) throw cause
      const line = [step.verb, ...step.words].join(' ')
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new ScenarioFault(step, `${line}\n${reason}`, cause)
    }
  }

  #run(step: Step): void {
    const [kind = '', ...words] = step.words
    if (step.verb === 'EXPECT') {
      const expectation = EXPECTATIONS[kind]
      assert.ok(expectation !== undefined, `no expectation is called ${kind}`)
      expectation(this.#world, words)
      this.expected = true
    } else if (step.verb === 'COUNTER') {
      this.#counter(step.words)
      this.expected = true
    } else {
      const runner = RUNNERS[step.verb]
      assert.ok(runner !== undefined, `no step is called ${step.verb}`)
      runner(this.#world, step)
    }
  }

  /** `NAME = N`, `NAME >= N`, `NAME + N` (grown by N since the last check). */
  #counter([name = '', operator = '', text]: readonly string[]): void {
    const value = countersOf(this.#world).get(name)
    const number = Number(text)
    assert.ok(value !== undefined, `no counter is called ${name}`)
    assert.ok(Number.isSafeInteger(number), `a number, not ${text}`)
    const before = this.#seen.get(name)
    this.#seen.set(name, value)
    switch (operator) {
      case '=':
        return assert.equal(value, number)
      case '>=':
        return assert.ok(value >= number, `${value} is at least ${number}`)
      case '+':
        assert.ok(before !== undefined, `${name} was checked before`)
        return assert.equal(value - before, number)
      default:
        assert.fail(`=, >= or +, not ${operator}`)
    }
  }
}

const RUNNERS: Readonly<Record<string, Runner>> = {
  ENDPOINTS: (world, step) => {
    const { endpoints, faults } = parseEndpoints(step.block, step.file)
    assert.deepEqual(faults.map(formatFault), [])
    world.endpoints.apply(endpoints)
    world.housekeeping.beginTransition()
    world.unknown.endpointsChanged()
  },
  POLICY: setPolicy,
  UPSTREAM: (world, step) => world.zone.add(step),
  QUERY: query,
  TIME_PASSES: (world, { words }) => world.clock.advance(durationOf(words[0])),
  OPEN: (world, { words: [from = '', to = ''] }) => open(world, from, to),
  CLOSE: (world, { words: [from = '', to = ''] }) => close(world, from, to),
  KERNEL: setKernel,
  MODE: ({ kernel }, { words: [text] }) => {
    const mode = MODES.find((each) => each === text)
    assert.ok(mode !== undefined, `${MODES.join(', ')}, not ${text}`)
    kernel.mode.set(mode)
  },
}

/** `POLICY FILE` with the file's new text, or `POLICY FILE gone`. */
function setPolicy(world: World, { words: [file = '', gone], block }: Step): void {
  assert.ok(file !== '', 'a policy has a file name')
  if (gone === 'gone') {
    assert.ok(world.policyFiles.delete(file), `${file} is there`)
  } else {
    const { policies, faults } = loadPolicies(block, file)
    assert.deepEqual(faults.map(formatFault), [])
    world.policyFiles.set(file, policies)
  }
  const all = [...world.policyFiles.values()].flat()
  world.policies.setPolicies(all, world.endpoints.registry)
  world.housekeeping.beginTransition()
}

/** `QUERY CLIENT NAME TYPE [tcp] [no-edns] [times N every DURATION]`. */
function query(world: World, { words }: Step): void {
  const [client = '', name = '', typeText = '', ...more] = words
  const type = TYPES[typeText]
  assert.ok(type !== undefined, `${Object.keys(TYPES).join(', ')}, not ${typeText}`)
  const from = octetsOf(client) === undefined ? addressOf(world, client) : client
  const repeat = /times (\d+) every (\w+)$/.exec(more.join(' '))
  const options = repeat === null ? more : more.slice(0, -4)
  assert.ok(
    options.every((each) => each === 'tcp' || each === 'no-edns'),
    options.join(' '),
  )
  const [tcp, edns] = [options.includes('tcp'), !options.includes('no-edns')]
  for (let i = 0; i < Number(repeat?.[1] ?? 1); i++) {
    if (i > 0) world.clock.advance(durationOf(repeat?.[2]))
    world.clients.ask(world.collector.room(), { from, name, type, tcp, edns })
    world.settle()
  }
}

/** `KERNEL refuses prefix [PREFIX ...]`, `KERNEL refuses policy`, `KERNEL healed`; `KERNEL takes DURATION`, `KERNEL stalls`,
 *  `KERNEL goes-on`. */
function setKernel({ kernel, slow }: World, { words: [verb, what, ...prefixes] }: Step): void {
  if (verb === 'takes') {
    slow.takesMs = durationOf(what)
    return
  }
  if (verb === 'stalls') return slow.stall()
  if (verb === 'goes-on') return slow.goOn()
  const refusal = REFUSALS.find((each) => each === what)
  assert.ok(
    verb === 'healed' || (verb === 'refuses' && refusal !== undefined),
    'a known kind of entries to refuse',
  )
  kernel.refusal = verb === 'healed' ? 'nothing' : (refusal ?? 'nothing')
  kernel.refusedPrefixes = new Set(prefixes)
}

function addressOf(world: World, name: string): string {
  const [address] = world.endpoint(name).addresses
  assert.ok(address !== undefined, `${name} has an address`)
  return formatAddress(address.family, address.octets)
}

function durationOf(text: string | undefined): number {
  const ms = parseDuration(text ?? '')
  assert.ok(ms !== undefined, `a duration, not ${text}`)
  return ms
}
