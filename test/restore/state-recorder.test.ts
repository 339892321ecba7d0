import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import { mkEndpoint, Node } from '../support/nodes/node.ts'
import { StateNode } from '../support/nodes/state-files.ts'

test('StateRecorder writes what the disk refused when it has room again, also without new events', async () => {
  const [machine, disk] = [new StateNode(), new MemoryDisk()]
  const sink = machine.store(disk)
  disk.upset({ after: 0, kind: 'EROFS' })
  const node = new Node({ clock: machine.clock, kept: { saved: undefined, sink, bootAtZero: 0 } })
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1'])])
  node.takeOver()
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      machine.clock.advance(1000)
      await disk.settle()
    }
  }
  await pass(120)
  assert.equal(sink.use.isFailing, true)
  const refused = sink.use.faults['read-only']
  assert.ok(refused > 2, 'tried again')
  disk.upset(undefined)
  await pass(120)
  assert.equal(sink.use.isFailing, false)
  assert.equal(machine.read(disk).state?.endpoints.size, 1)
})
