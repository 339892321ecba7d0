// Files change under a running process while a client asks without a pause. A name that is denied before and after an edit is never
// answered, and a name that is allowed before and after always is.

import assert from 'node:assert/strict'
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, test } from 'node:test'
import { http } from '../support/nodes/admin.ts'
import { endpointsText, MountedFolder, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import type { DnsClient } from '../support/peers/dns-client.ts'
import { FakeUpstream } from '../support/peers/upstream.ts'

const EDITS = 200
const SWAPS = 12

let upstream: FakeUpstream
let folder: DaemonFolder
let daemon: RunningDaemon
let mounted: MountedFolder
let metrics: number

/** One of several versions of the policy. `filler` makes it long. */
function version(n: number): Readonly<Record<string, string>> {
  const more = Array.from({ length: 40 }, (_, i) => `filler-${i}.example`)
  const texts = ['steady.example', `v${n}.example`]
  return n % 2 === 0
    ? { 'a.yaml': policyText('web', [...texts, ...more]) }
    : { 'a.yaml': policyText('web', texts), 'b.yaml': policyText('more', more) }
}

before(async () => {
  upstream = await FakeUpstream.start()
  metrics = await freePort()
  folder = new DaemonFolder({
    files: {
      'plain/web.yaml': policyText('plain', ['plain.example'], { app: 'plain' }),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1', plain: '127.0.0.2' }, (name) => name),
    },
    config: {
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
      policies: '{ paths: [plain, mounted] }',
      metrics: `{ address: 127.0.0.1, port: ${metrics} }`,
    },
  })
  mounted = new MountedFolder(folder.in('mounted'), version(0))
  daemon = await folder.serve()
})

after(async () => {
  await daemon.process.stop()
  await upstream.stop()
  folder.remove()
})

/** Asks one name after the other until `work` is done. Counts the answers of each name by code. */
async function askMeanwhile(
  client: DnsClient,
  names: readonly string[],
  work: () => Promise<void>,
): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
  const told = new Map(names.map((name) => [name, new Map<string, number>()]))
  let working = true
  const asking = (async () => {
    while (working) {
      for (const [name, counts] of told) {
        const { rcode } = await client.ask(name)
        counts.set(rcode, (counts.get(rcode) ?? 0) + 1)
      }
    }
  })()
  try {
    await work()
  } finally {
    working = false
    await asking
  }
  return told
}

async function untilTold(client: DnsClient, name: string, rcode: string): Promise<void> {
  const deadline = performance.now() + 10_000
  while ((await client.ask(name)).rcode !== rcode) {
    assert.ok(performance.now() < deadline, `${name} is not answered with ${rcode}`)
    await sleep(20)
  }
}

/** Writes as editors do that do not rename: truncates the file, then writes it in pieces. */
async function edit(file: string, text: string, pieces: number): Promise<void> {
  const fd = openSync(file, 'r+')
  ftruncateSync(fd)
  const size = Math.ceil(text.length / pieces)
  for (let at = 0; at < text.length; at += size) {
    await sleep(1)
    writeSync(fd, text.slice(at, at + size), at)
  }
  closeSync(fd)
}

describe('namegate run', () => {
  test('never answers a denied name during 200 edits by truncating and writing in pieces', async (t) => {
    const file = folder.in('plain/web.yaml')
    const client = await daemon.client('127.0.0.2')
    const names = ['denied.example', 'plain.example', 'steady.other']
    const told = await askMeanwhile(client, names, async () => {
      for (let i = 0; i < EDITS; i++) {
        const text = policyText('plain', ['plain.example', `edit-${i}.example`], { app: 'plain' })
        await edit(file, text, 1 + (i % 5))
        // Sometimes the pause is long enough for the file to settle.
        await sleep(i % 20 === 0 ? 220 : i % 7)
      }
      await untilTold(client, `edit-${EDITS - 1}.example`, 'NOERROR')
    })
    client.close()
    for (const [name, counts] of told) {
      const expected = name === 'plain.example' ? 'NOERROR' : 'REFUSED'
      assert.deepEqual([...counts.keys()], [expected], name)
      t.diagnostic(`${name}: ${counts.get(expected)} times ${expected}`)
    }
    const status = await daemon.status()
    assert.deepEqual([status['faults'], status['realizedRevision']], [[], status['policyRevision']])
  })

  test('never answers a denied name while a mounted folder is swapped', async (t) => {
    const client = await daemon.client()
    const revisions: unknown[] = []
    const names = ['denied.example', 'steady.example', 'filler-7.example']
    const told = await askMeanwhile(client, names, async () => {
      for (let n = 1; n <= SWAPS; n++) {
        mounted.publish(version(n))
        await untilTold(client, `v${n}.example`, 'NOERROR')
        assert.equal((await client.ask(`v${n - 1}.example`)).rcode, 'REFUSED')
        revisions.push((await daemon.status())['policyRevision'])
      }
    })
    client.close()
    for (const [name, counts] of told) {
      const expected = name === 'denied.example' ? 'REFUSED' : 'NOERROR'
      assert.deepEqual([...counts.keys()], [expected], name)
      t.diagnostic(`${name}: ${counts.get(expected)} times ${expected}`)
    }
    const first = Number(revisions[0])
    assert.deepEqual(
      revisions,
      revisions.map((_, i) => first + i),
      'each swap is one change',
    )
  })

  test('reports a broken file in status, readyz, metrics, log and get policies, and continues', async () => {
    const client = await daemon.client('127.0.0.2')
    folder.write('plain/web.yaml', 'apiVersion: cilium.io/v2\nkind: Nonsense\n')
    await daemon.process.untilOutput(/plain\/web\.yaml:2:7: .*Nonsense/)
    const place = /plain\/web\.yaml:2:7: /
    assert.match((await http({ port: metrics }, '/readyz')).text, place)
    assert.equal(
      (await http({ port: metrics }, '/readyz')).status,
      200,
      'the policies in force are sound',
    )
    assert.match(
      (await http({ port: metrics }, '/metrics')).text,
      /namegate_policy_files\{state="last-good"\} 1\n/,
    )
    const listed = await folder.namegate('get', 'policies', '-o', 'json')
    assert.match(
      listed.stdout,
      /"name":"plain".*"state":"last-good","error":"plain\/web\.yaml:2:7: /,
    )
    assert.match((await folder.namegate('status')).stdout, /^fault: plain\/web\.yaml:2:7: /m)
    assert.equal((await client.ask('plain.example')).rcode, 'NOERROR')
    assert.equal((await client.ask('denied.example')).rcode, 'REFUSED')
    folder.write('plain/web.yaml', policyText('plain', ['mended.example'], { app: 'plain' }))
    await untilTold(client, 'mended.example', 'NOERROR')
    assert.equal((await client.ask('plain.example')).rcode, 'REFUSED')
    assert.equal((await http({ port: metrics }, '/readyz')).text, 'ready\n')
    client.close()
  })

  test('reads its files again at SIGHUP', async () => {
    const before = (await daemon.status())['policyRevision']
    daemon.process.kill('SIGHUP')
    await daemon.process.untilOutput(/reading configuration files again/)
    await sleep(250)
    const status = await daemon.status()
    assert.deepEqual([status['policyRevision'], status['faults']], [before, []], 'equal input')
  })
})
