// The wall clock is set a day forward or back under a running daemon, and back again while no daemon runs. The daemon measures time with
// the kernel's monotonic clock, so nothing ends early or late. Times in output follow the wall clock.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, test } from 'node:test'
import { isFields, listOf, textOf, type Fields } from '../../src/cli/fields.ts'
import { isBuilt } from '../../src/native/native.ts'
import { http } from '../support/nodes/admin.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import type { LabProcess } from '../support/labs/lab-process.ts'
import { readExposition } from '../support/nodes/metrics.ts'
import { DAY_MS, ShiftedClock } from '../support/peers/shifted-clock.ts'
import { canUseSteadyDns } from '../support/peers/steady-dns.ts'
import { Supervise } from '../support/peers/supervise.ts'
import { answerTo, FakeUpstream } from '../support/peers/upstream.ts'

const skip = isBuilt('posix') && isBuilt('udp') ? (canUseSteadyDns() ?? false) : 'no native part'
const HOUR_MS = 3_600_000
const SHORT_MS = 1_000
const GRACE_MS = 2_000
/** The time that a slow machine can need: far less than a day. */
const SLOW_MS = 120_000

/** One supervised daemon under its own clock. */
class Site {
  readonly clock = new ShiftedClock()
  readonly folder: DaemonFolder
  readonly #supervise = new Supervise()
  readonly #metrics: number
  #heard: LabProcess | undefined
  #daemon: RunningDaemon | undefined

  constructor(upstream: number, metrics: number) {
    this.#metrics = metrics
    this.folder = new DaemonFolder({
      files: {
        'policy.yaml': policyText('web', ['*.example']),
        'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
      },
      config: {
        upstreams: `{ servers: ["127.0.0.1:${upstream}"] }`,
        dns: `{ grace-after-ttl: ${GRACE_MS}ms }`,
        flows: '{ keep: 12h }',
        metrics: `{ address: 127.0.0.1, port: ${metrics} }`,
      },
    })
  }

  get daemon(): RunningDaemon {
    return this.#daemon ?? assert.fail('the daemon has not started')
  }

  async start(): Promise<void> {
    const socket = this.folder.in('notify')
    this.#heard ??= await this.#supervise.notify(socket)
    const supervised = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '800000' }
    this.#daemon = await this.folder.serve({ ...this.clock.env, ...supervised })
  }

  async kill(): Promise<void> {
    this.daemon.process.kill('SIGKILL')
    await this.daemon.process.ended(10_000)
  }

  async ask(name: string): Promise<string> {
    const client = await this.daemon.client()
    const { rcode } = await client.ask(name)
    client.close()
    return rcode
  }

  async give(name: string, ttl: string): Promise<void> {
    const body = { addresses: ['198.51.100.7'], labels: { 'k8s:app': 'db' }, ttl }
    const options = { method: 'PUT', body: JSON.stringify(body) }
    const socketPath = this.folder.in('admin.sock')
    const { status, text } = await http({ socketPath }, `/v1/resources/${name}`, options)
    assert.equal(status, 200, text)
  }

  /** The row of a name in `names` or `resources`. */
  async find(what: 'names' | 'resources', name: string): Promise<Fields | undefined> {
    const rows: unknown = JSON.parse((await this.daemon.get(`/v1/${what}`)).text)
    assert.ok(Array.isArray(rows))
    return rows.filter(isFields).find((row) => row['name'] === name)
  }

  async untilThere(name: string): Promise<void> {
    const deadline = performance.now() + SLOW_MS
    while ((await this.find('names', name)) === undefined) {
      assert.ok(performance.now() < deadline, `${name} is not there`)
      await sleep(50)
    }
  }

  /** Waits until the row is gone. */
  async untilGone(what: 'names' | 'resources', name: string): Promise<void> {
    const deadline = performance.now() + SLOW_MS
    while ((await this.find(what, name)) !== undefined) {
      assert.ok(performance.now() < deadline, `${name} is still there`)
      await sleep(50)
    }
  }

  /** Milliseconds until a time in the output, by the daemon's clock. */
  until(shown: unknown): number {
    return Date.parse(textOf(shown)) - this.clock.now()
  }

  async metric(key: string): Promise<number> {
    const { text } = await http({ port: this.#metrics }, '/metrics')
    return readExposition(text).samples.get(key) ?? assert.fail(`no metric is called ${key}`)
  }

  /** Times of the kept flows about a name. */
  async flows(name: string): Promise<readonly unknown[]> {
    const { stdout } = await this.folder.namegate('flows', '--kept', '-o', 'json')
    const rows = stdout.split('\n').filter((line) => line !== '')
    return rows
      .map((line): unknown => JSON.parse(line))
      .filter(isFields)
      .filter((row) => row['name'] === name)
      .map((row) => row['time'])
  }

  /** Waits until the watchdog was fed a few more times. */
  async fed(): Promise<void> {
    const count = (): number => (this.#heard?.stdout ?? '').split('WATCHDOG=1').length
    const from = count()
    await until('the watchdog is fed', () => count() >= from + 5, SLOW_MS)
  }

  async close(): Promise<void> {
    await this.#daemon?.process.stop()
    await this.#heard?.stop()
    this.clock.close()
    this.folder.remove()
  }
}

/** Checks the time that is left, less the time of a slow machine. `late` is the delay of the record on disk. */
function assertLeft(left: number, expected: number, what: string, late = 0): void {
  const most = expected + late + 2_000
  assert.ok(left <= most && left > expected - SLOW_MS, `${what}: ${left} ms left`)
}

for (const [direction, jumpMs] of [
  ['forward', DAY_MS],
  ['back', -DAY_MS],
] as const) {
  describe(`the daemon when its clock is set a day ${direction}`, { skip }, () => {
    let upstream: FakeUpstream
    let site: Site
    let asked = 0
    let given = 0

    before(async () => {
      upstream = await FakeUpstream.start((query) => {
        const ttl = query.name === 'short.example' ? SHORT_MS : HOUR_MS
        query.send(answerTo(query, { ttl: ttl / 1000 }))
      })
      site = new Site(upstream.port, await freePort())
      await site.start()
      assert.equal(await site.ask('long.example'), 'NOERROR')
      await site.give('before', '1h')
      given = performance.now()
      await site.give('brief', '4s')
      asked = performance.now()
      assert.equal(await site.ask('short.example'), 'NOERROR')
      site.clock.set(jumpMs)
    })

    after(async () => {
      await site.close()
      await upstream.stop()
    })

    test('forgets a name at the end of its TTL and grace, and no other name', async () => {
      await site.untilGone('names', 'short.example')
      assert.ok(performance.now() - asked >= SHORT_MS + GRACE_MS, 'not before')
      const [address = {}] = listOf((await site.find('names', 'long.example'))?.['addresses'])
      assert.ok(isFields(address))
      assert.equal(address['state'], 'live')
      assertLeft(site.until(address['expires']), HOUR_MS, 'in the output')
    })

    test('removes a resource at the end of its TTL, and no other resource', async () => {
      await site.untilGone('resources', 'brief')
      assert.ok(performance.now() - given >= 4_000, 'not before')
      const known = await site.find('resources', 'before')
      assertLeft(site.until(known?.['expires']), HOUR_MS, 'in the output')
    })

    test('continues: servers are up, names are answered, the watchdog is fed, no source is stale', async () => {
      assert.equal(await site.ask('new.example'), 'NOERROR')
      await site.fed()
      const { health, upstreams } = await site.daemon.status()
      assert.equal(health, 'ok')
      assert.deepEqual(
        listOf(upstreams)
          .filter(isFields)
          .map(({ state }) => state),
        ['up'],
      )
      for (const source of ['policies', 'endpoints']) {
        const age = await site.metric(`namegate_source_age_seconds{source="${source}"}`)
        assert.ok(age >= 0 && age * 1000 < SLOW_MS, `${source}: ${age} s`)
      }
    })

    test('keeps earlier flows, and dates new ones by the clock', async () => {
      const deadline = performance.now() + SLOW_MS
      let times: readonly unknown[] = []
      while (times.length === 0) {
        assert.ok(performance.now() < deadline, 'the new flow is kept')
        times = await site.flows('new.example')
      }
      assertLeft(site.until(times[0]), 0, 'the new one')
      const [old] = await site.flows('long.example')
      assertLeft(site.until(old) + jumpMs, 0, 'the old one')
    })

    test('knows the same after kill -9 when the clock is corrected meanwhile', async () => {
      await site.give('after', '1h')
      await site.kill()
      site.clock.set(0)
      await site.start()
      // The name is restored while the daemon serves.
      await site.untilThere('long.example')
      const [address = {}] = listOf((await site.find('names', 'long.example'))?.['addresses'])
      assert.ok(isFields(address))
      assertLeft(site.until(address['expires']), HOUR_MS, 'the name', HOUR_MS / 16)
      for (const name of ['before', 'after']) {
        const found = await site.find('resources', name)
        assertLeft(site.until(found?.['expires']), HOUR_MS, name)
      }
      assert.equal(await site.ask('long.example'), 'NOERROR')
      assert.notEqual((await site.flows('new.example')).length, 0)
      await site.fed()
    })
  })
}
