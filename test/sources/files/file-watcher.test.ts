import assert from 'node:assert/strict'
import { test } from 'node:test'
import { execConfig } from '../../../src/config/exec-config.ts'
import { FileWatcher } from '../../../src/sources/files/file-watcher.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const AT_REST = {
  files: [],
  isReachable: true,
  unsettled: false,
  forget: () => undefined,
  poll: () => false,
  scan: () => true,
}

/** A watcher of policies with the given `scan`. Endpoints and resources do nothing. */
function mkWatcher(clock: FakeClock, watch: boolean, scan: (until: number) => boolean) {
  const config = execConfig({
    families: [4],
    policyFile: undefined,
    graceMs: 0,
    denyResponse: 'refused',
    allowedPrefixes: [],
  })
  return new FileWatcher({
    config: { ...config, policies: { ...config.policies, watch } },
    clock,
    files: { policies: { ...AT_REST, scan }, endpoints: AT_REST, resources: AT_REST },
    onChanged: () => undefined,
    onSilence: () => undefined,
  })
}

test('FileWatcher continues an unfinished look at once, waits after a finished one, and stops when nothing is left to watch', () => {
  const clock = new FakeClock(0)
  // `reload` itself is the first look.
  const finished = [false, false, false, true]
  const looks: number[] = []
  const watcher = mkWatcher(clock, false, (until) => {
    if (until !== Number.POSITIVE_INFINITY) assert.equal(until, clock.now() + 2)
    looks.push(clock.now())
    return finished.shift() ?? true
  })
  watcher.reload()
  clock.advance(1000)
  assert.deepEqual(looks, [0, 100, 100, 100])
  assert.equal(watcher.isRunning, false)
})

test('FileWatcher looks every 100 ms while no file has rested for long', () => {
  const clock = new FakeClock(0)
  const finished = [false, false, true, false, true]
  const looks: number[] = []
  const watcher = mkWatcher(clock, true, () => {
    looks.push(clock.now())
    return finished.shift() ?? true
  })
  watcher.start()
  clock.advance(300)
  watcher.stop()
  assert.deepEqual(looks, [100, 100, 100, 200, 200, 300])
})

test('FileWatcher.stop ends an unfinished look', () => {
  const clock = new FakeClock(0)
  let looks = 0
  const watcher = mkWatcher(clock, true, () => {
    looks++
    watcher.stop()
    return false
  })
  watcher.start()
  clock.advance(1000)
  assert.equal(looks, 1)
})
