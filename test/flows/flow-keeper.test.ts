import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FLOW_CAPACITY, FlowRing } from '../../src/flows/record/flow-ring.ts'
import { FlowKeeper } from '../../src/flows/flow-keeper.ts'
import type { FlowOutput, FlowOutputName } from '../../src/flows/flow-outputs.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'

const AT_ZERO = Date.UTC(2026, 0, 2)

/** An output whose room the test sets. */
class Sink implements FlowOutput {
  readonly name: FlowOutputName
  room: number
  text = ''
  stopped = false

  constructor(name: FlowOutputName, room: number) {
    this.name = name
    this.room = room
  }

  get lines(): readonly string[] {
    return this.text.split('\n').slice(0, -1)
  }

  write(lines: string): void {
    this.text += lines
    this.room -= Buffer.byteLength(lines)
  }

  tick(): void {
    // Nothing fails here.
  }

  async stop(): Promise<void> {
    this.stopped = true
    return await Promise.resolve()
  }
}

class Lab {
  readonly clock = new FakeClock(0, AT_ZERO)
  readonly ring = new FlowRing()
  readonly keeper: FlowKeeper

  constructor(...outputs: readonly FlowOutput[]) {
    const { ring, clock } = this
    const describe = (number: number): string => `"name":"${ring.get(number).name ?? ''}"`
    this.keeper = new FlowKeeper({ ring, clock, outputs, node: 'n1', describe })
    this.keeper.start()
  }

  ask(name: string, endpoint = 1): void {
    const flow = mkDnsFlow(name, { kind: 'answered', endpoint, outcome: 1, addresses: 1 })
    this.ring.addDns(this.clock.wall(), flow)
  }
}

test('FlowKeeper writes new flows within a second, with times, count and the name of the node', () => {
  const sink = new Sink('file', 1e6)
  const lab = new Lab(sink)
  lab.ask('a.example')
  lab.clock.advance(50)
  lab.ask('a.example')
  lab.clock.advance(1000)
  assert.deepEqual(sink.lines, [
    '{"time":"2026-01-02T00:00:00.000Z","last":"2026-01-02T00:00:00.050Z","count":2,"node":"n1","name":"a.example"}',
  ])
  lab.ask('a.example')
  lab.clock.advance(30_000)
  assert.equal(sink.lines.length, 1, 'a repetition is not new')
  lab.clock.advance(40_000)
  assert.match(sink.lines[1] ?? '', /"count":1,/)
})

test('FlowKeeper counts while an output has no room, and writes all when it has', () => {
  const sink = new Sink('file', 0)
  const lab = new Lab(sink)
  for (let second = 0; second < 300; second++) {
    lab.ask('a.example')
    lab.ask('b.example')
    lab.clock.advance(1000)
  }
  assert.equal(sink.text, '')
  sink.room = 1e6
  lab.clock.advance(1000)
  assert.deepEqual(
    sink.lines.map((line) => /"count":\d+/.exec(line)?.[0]),
    ['"count":300', '"count":300'],
  )
  assert.equal(lab.keeper.lost, 0)
})

test('FlowKeeper counts the lines that one output has no room for while another accepts them', () => {
  const [file, stdout] = [new Sink('file', 1e6), new Sink('stdout', 10)]
  const lab = new Lab(file, stdout)
  lab.ask('a.example')
  lab.ask('b.example')
  lab.clock.advance(1100)
  assert.equal(file.lines.length, 2)
  assert.equal(stdout.text, '')
  assert.deepEqual([...lab.keeper.refused], [['stdout', 2]])
  assert.deepEqual([...lab.keeper.taken], [['file', 2]])
})

test('FlowKeeper reports once how many flows are in no line', () => {
  const sink = new Sink('file', 1e6)
  const lab = new Lab(sink)
  for (let i = 0; i < FLOW_CAPACITY + 10; i++) lab.ask('a.example')
  lab.clock.advance(1100)
  assert.equal(lab.keeper.overrun, 10)
  assert.deepEqual(
    sink.lines.toReversed().slice(0, 1),
    sink.lines.filter((line) => line.includes('"a.example"')),
  )
  assert.match(sink.lines[0] ?? '', /"count":10,"node":"n1","kind":"lost","verdict":"event"/)
  lab.clock.advance(5000)
  assert.equal(sink.lines.filter((line) => line.includes('lost')).length, 1)
})

test('FlowKeeper.stop writes its counts and ends its outputs', async () => {
  const sink = new Sink('file', 1e6)
  const lab = new Lab(sink)
  for (let i = 0; i < 2000; i++) lab.ask('a.example')
  lab.clock.advance(1100)
  for (let i = 0; i < 5000; i++) lab.ask(`n${i}.example`)
  lab.ask('a.example')
  const stopped = lab.keeper.stop()
  let ended = false
  void stopped.then(() => (ended = true))
  while (!ended) {
    lab.clock.advance(10)
    await Promise.resolve()
  }
  assert.ok(sink.stopped)
  assert.equal(sink.lines.length, 1 + 5000 + 1)
})

for (const [direction, jumpMs] of [
  ['forward', 86_400_000],
  ['back', -86_400_000],
] as const) {
  test(`FlowKeeper writes repetitions after a minute, and silent flows as new, when the clock is set a day ${direction}`, () => {
    const sink = new Sink('file', 1e6)
    const lab = new Lab(sink)
    lab.ask('a.example')
    lab.clock.advance(2000)
    lab.clock.offsetMs = jumpMs
    lab.ask('a.example')
    lab.clock.advance(30_000)
    assert.equal(sink.lines.length, 1, 'not due yet')
    assert.equal(lab.keeper.tally.size, 1)
    lab.clock.advance(40_000)
    assert.equal(sink.lines.length, 2)
    assert.equal(lab.keeper.tally.size, 1)
    lab.clock.advance(11 * 60_000)
    assert.equal(lab.keeper.tally.size, 0)
  })
}
