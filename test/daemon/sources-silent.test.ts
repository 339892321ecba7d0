// The sources of policies and endpoints are silent. What is in force stays, and new names get identities. After `sources.max-age`,
// `sources.then` decides, until a source is heard again.

import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { test } from 'node:test'
import { explainBody } from '../../src/admin/explain.ts'
import { flowView } from '../../src/admin/views/flows.ts'
import { sourceRows } from '../../src/admin/views/sources.ts'
import { statusView } from '../../src/admin/views/status.ts'
import type { FakeClock } from '../support/fake-clock.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { MemoryApi } from '../support/kubernetes/memory-api.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

const MINUTE = 60_000
/** Looks are at least every 5 seconds. */
const LOOK = 6000

function options(then: 'keep' | 'audit' | 'deny') {
  return {
    files: {
      'policies/a.yaml': policyText('shop', ['*.shop.example']),
      'places/endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    },
    policies: ['policies'],
    endpoints: ['places'],
    config: `sources: { max-age: 1m, then: ${then} }`,
  }
}

function lose(lab: DaemonLab): void {
  for (const name of ['policies', 'places']) renameSync(lab.path(name), lab.path(`${name}-away`))
}

function find(lab: DaemonLab): void {
  for (const name of ['policies', 'places']) renameSync(lab.path(`${name}-away`), lab.path(name))
}

/** Passes time in steps, as a clock does. */
async function passSteps(lab: DaemonLab, milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 1000) await lab.pass(1000)
}

function labelsOf({ daemon }: DaemonLab, address: string): readonly string[] {
  const { allocator, ipcache, labelSets } = daemon.core
  const { prefixes } = ipcache
  for (let row = 1; row <= prefixes.slots.high; row++) {
    if (prefixes.wanted[row] === 0 || prefixes.format(row) !== address) continue
    const set = allocator.setOf(prefixes.identityOf(row))
    return set === undefined ? [] : labelSets.format(set)
  }
  return []
}

function logged({ logged: lines }: DaemonLab, what: RegExp): number {
  return lines.filter((line) => what.test(line)).length
}

const SILENT = /silent for longer than sources\.max-age/
const HEARD = /all sources are heard again/

test('Daemon gives new names their identities while all sources are silent (P29)', async () => {
  await withLab(options('keep'), async (lab) => {
    lose(lab)
    await passSteps(lab, 2 * MINUTE)
    assert.deepEqual(labelsOf(lab, '192.0.2.1/32'), [])
    assert.equal(await lab.verdict('never-seen.shop.example'), 'NOERROR')
    assert.ok(labelsOf(lab, '192.0.2.1/32').includes('fqdn:*.shop.example'))
    assert.match(await lab.verdict('other.example'), /^REFUSED/)
    const { warnings } = statusView(lab.admin)
    assert.match(warnings.join('\n'), /^policies were not heard for longer than sources\.max-age$/m)
    assert.match(warnings.join('\n'), /^endpoints were not heard/m)
    assert.equal(lab.daemon.mode.now, 'enforce')
    const metrics = await lab.admin.metrics()
    const age = /source_age_seconds\{source="policies"\} (\d+)/.exec(metrics)?.[1]
    assert.ok(Number(age) > 60, `age ${age}`)
    assert.equal(logged(lab, SILENT), 1)
    find(lab)
    await passSteps(lab, LOOK)
    assert.equal(logged(lab, HEARD), 1)
    assert.equal(await lab.verdict('another.shop.example'), 'NOERROR')
  })
})

test('Daemon with sources.then audit denies nothing from max-age until the sources are heard', async () => {
  await withLab(options('audit'), async (lab) => {
    lose(lab)
    await passSteps(lab, MINUTE - LOOK)
    assert.equal(lab.daemon.mode.now, 'enforce')
    await passSteps(lab, 2 * LOOK)
    assert.equal(lab.daemon.mode.now, 'audit')
    assert.equal(await lab.verdict('other.example'), 'NOERROR')
    find(lab)
    await passSteps(lab, LOOK)
    assert.equal(lab.daemon.mode.now, 'enforce')
    assert.deepEqual([logged(lab, SILENT), logged(lab, HEARD)], [1, 1])
  })
})

test('Daemon with sources.then audit keeps a bypass that was set by hand', async () => {
  await withLab(options('audit'), async (lab) => {
    lab.daemon.mode.set('bypass')
    lose(lab)
    await passSteps(lab, MINUTE + LOOK)
    assert.equal(lab.daemon.mode.now, 'bypass')
    find(lab)
    await passSteps(lab, LOOK)
    assert.equal(lab.daemon.mode.now, 'bypass')
  })
})

test('Daemon with sources.then deny refuses every name from max-age, and known addresses stay', async () => {
  await withLab(options('deny'), async (lab) => {
    lose(lab)
    await passSteps(lab, MINUTE - LOOK)
    assert.equal(await lab.verdict('a.shop.example'), 'NOERROR')
    await passSteps(lab, 2 * LOOK)
    assert.match(await lab.verdict('a.shop.example'), /^REFUSED/)
    const answer = await lab.ask('b.shop.example')
    assert.deepEqual([answer.rcode, answer.ede], ['REFUSED', 15])
    assert.match(answer.why, /silent for too long/)
    const flow = flowView(lab.admin, lab.daemon.flows.count - 1, undefined)
    assert.ok(flow?.kind === 'denied')
    assert.equal(flow.reason, 'sources-silent')
    const explained = explainBody(lab.admin, { endpoint: 'me', ask: 'b.shop.example' })
    assert.ok(explained.kind === 'ok')
    assert.equal(explained.value.verdict, 'deny')
    assert.match(explained.value.reason, /^every name is refused while policies and endpoints are/)
    assert.match(await lab.verdict('other.example'), /^REFUSED 15$/)
    const denied = explainBody(lab.admin, { endpoint: 'me', ask: 'other.example' })
    assert.ok(denied.kind === 'ok')
    assert.doesNotMatch(denied.value.reason, /silent/)
    assert.match(statusView(lab.admin).warnings.join('\n'), /every name that is asked is refused/)
    assert.match(
      lab.logged.find((line) => SILENT.test(line)) ?? '',
      /"reason":"sources.then is deny"/,
    )
    assert.ok(labelsOf(lab, '192.0.2.1/32').includes('fqdn:*.shop.example'))
    find(lab)
    await passSteps(lab, LOOK)
    assert.equal(await lab.verdict('b.shop.example'), 'NOERROR')
  })
})

const CLUSTER = {
  files: {},
  policies: [],
  endpoints: [],
  config: 'kubernetes: { node: n }\nsources: { max-age: 1m, then: deny }',
}

test('Daemon counts collections that the API server does not show as silent', async () => {
  const model = new ApiModel()
  let api: MemoryApi | undefined
  const cluster = (clock: FakeClock): MemoryApi => (api = new MemoryApi(model, clock))
  await withLab({ ...CLUSTER, cluster }, async (lab) => {
    const warnings = (): string => statusView(lab.admin).warnings.join('\n')
    await passSteps(lab, 2 * MINUTE)
    assert.doesNotMatch(warnings(), /not heard/)
    assert.ok(api !== undefined)
    api.isAway = true
    api.drop()
    await passSteps(lab, MINUTE - LOOK)
    assert.doesNotMatch(warnings(), /not heard/)
    await passSteps(lab, 3 * LOOK)
    assert.match(warnings(), /^collections were not heard for longer than sources\.max-age/m)
    assert.equal(lab.daemon.mode.isSilentFor('deny'), true)
    assert.equal(logged(lab, SILENT), 1)
    const rows = [...sourceRows(lab.admin)]
    assert.deepEqual(
      rows.filter(({ origin }) => origin === 'files').map(({ kind, state }) => [kind, state]),
      [
        ['policies', 'read'],
        ['endpoints', 'read'],
        ['resources', 'read'],
      ],
    )
    assert.match(await lab.metrics(), /source_age_seconds\{source="collections"\} [67]\d/)
    api.isAway = false
    // The pause between two attempts is at most half a minute.
    await passSteps(lab, MINUTE)
    assert.equal(logged(lab, HEARD), 1)
    assert.equal(lab.daemon.mode.isSilentFor('deny'), false)
  })
})

test('Daemon does not count a kind that the cluster does not have as silent', async () => {
  const model = new ApiModel()
  model.defined.delete('clusternetworkpolicies')
  const cluster = (clock: FakeClock): MemoryApi => new MemoryApi(model, clock)
  await withLab({ ...CLUSTER, cluster }, async (lab) => {
    await passSteps(lab, 2 * MINUTE)
    assert.deepEqual(lab.daemon.sources.ages.silent, [])
  })
})
