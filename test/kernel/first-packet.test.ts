// The one promise on the real kernel: an answer is released only when its addresses are enforced. A client whose
// `connect` is the next system call after `recv` asks for names that nobody asked before, and never loses a packet.
// The same client against commits that come 30 ms late loses nearly all of its first packets: the proof can fail.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  compileClient,
  parseAttempts,
  percentile,
  retransmitted,
  show,
  toolMissing,
  type Attempt,
} from '../support/first-packets.ts'
import { podLab, type PodLab } from '../support/lab-pod.ts'
import { canUseNamegate, Namegate, type StartOptions } from '../support/lab-namegate.ts'
import { addressAt, type Zones } from '../support/zones.ts'

const ZONE = { first4: '198.18.16.0', first6: '2001:db8:80:1::' }
const ZONES: Zones = { fresh: { 'fresh.test': ZONE } }
const NAMES_4 = 2000
const NAMES_6 = 400
/** Names between two looks into the kernel's map. */
const CHUNK = 100
const MILLISECOND = 1_000_000

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: fresh }
spec:
  endpointSelector: { matchLabels: { app: client } }
  egress:
    - toFQDNs: [{ matchPattern: '*.fresh.test' }]
      toPorts: [{ ports: [{ port: '80', protocol: TCP }] }]
`
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: client }, interface: lxc1 }"

const skip = canUseNamegate() ?? (toolMissing('gcc') ? 'gcc is not installed' : false)

/** Hosts, servers, the compiled client and namegate, for one run of names counted from 0. */
class Run {
  readonly lab: PodLab = podLab()
  readonly folder = mkdtempSync(join(tmpdir(), 'namegate-first-packet-'))
  readonly namegate: Namegate
  /** Names asked so far: each next one gets the zone's next address. */
  asked = 0

  constructor() {
    compileClient(this.client)
    this.namegate = new Namegate(this.lab, {
      policies: { 'fresh.yaml': POLICY },
      endpoints: [ENDPOINT],
    })
  }

  get client(): string {
    return join(this.folder, 'first-packet')
  }

  async start(options: StartOptions = {}): Promise<void> {
    await this.lab.startNameServer(ZONES)
    await this.lab.startWebServer()
    await this.namegate.start(options)
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #args(family: 4 | 6, first: number, count: number, waitMs: number): string[] {
    const { gateway4, gateway6 } = this.lab.pods[0]!
    const resolver = family === 4 ? gateway4 : gateway6
    return [resolver, `${family}`, `${first}`, `${count}`, 'fresh.test', `${waitMs}`]
  }

  /** The addresses that the next names will get. */
  coming(family: 4 | 6, count: number): string[] {
    const first = family === 4 ? ZONE.first4 : ZONE.first6
    return Array.from({ length: count }, (_, i) => addressAt(first, this.asked + i))
  }

  /** Asks for the next names, in so many clients at once; no address is in the kernel's map just before. */
  async ask(family: 4 | 6, count: number, waitMs: number, clients = 1): Promise<Attempt[]> {
    const coming = this.coming(family, count)
    assertAbsent(this.namegate, family, coming)
    const each = count / clients
    const outputs = Array.from({ length: clients }, async (_, i) => {
      const args = this.#args(family, this.asked + i * each, each, waitMs)
      return await this.lab.pods[0]!.host.run(this.client, args)
    })
    const attempts: Attempt[] = []
    for (const { code, stdout, stderr } of await Promise.all(outputs)) {
      assert.equal(code, 0, stderr + this.namegate.daemon.stderr)
      attempts.push(...parseAttempts(stdout))
    }
    this.asked += count
    const answered = attempts.map(({ address }) => address)
    assert.deepEqual(answered.toSorted(), coming.toSorted())
    return attempts
  }

  async askMany(family: 4 | 6, count: number): Promise<Attempt[]> {
    const attempts: Attempt[] = []
    assertAbsent(this.namegate, family, this.coming(family, count))
    for (let done = 0; done < count; done += CHUNK) {
      attempts.push(...(await this.ask(family, Math.min(CHUNK, count - done), 0)))
    }
    return attempts
  }

  /** What the client does for the next names, one system call a line. */
  async trace(count: number): Promise<string[]> {
    const log = join(this.folder, 'trace')
    const args = ['-qq', '-o', log, this.client, ...this.#args(4, this.asked, count, 0)]
    const { code, stderr } = await this.lab.pods[0]!.host.run('strace', args)
    assert.equal(code, 0, stderr)
    this.asked += count
    return readFileSync(log, 'utf8').trim().split('\n')
  }
}

function assertAbsent(namegate: Namegate, family: 4 | 6, addresses: readonly string[]): void {
  const held = namegate.prefixes()
  const length = family === 4 ? 32 : 128
  assert.deepEqual(
    addresses.filter((address) => held.has(`${address}/${length}`)),
    [],
  )
}

describe('first packet', { skip }, () => {
  let run: Run
  before(async () => {
    run = new Run()
    await run.start()
  })
  after(async () => await run.close())

  for (const [family, names] of [
    [4, NAMES_4],
    [6, NAMES_6],
  ] as const) {
    it(`after the answer of ${names} new names is never lost, IPv${family}`, async (t) => {
      const before = await retransmitted(run.lab.pods[0]!.host)
      const attempts = await run.askMany(family, names)
      show(t, `IPv${family}`, attempts)
      assert.deepEqual(
        attempts.filter(({ errno }) => errno !== 0),
        [],
      )
      assert.deepEqual(await retransmitted(run.lab.pods[0]!.host), before)
      const gaps = attempts.map(({ gap }) => gap)
      assert.ok(percentile(gaps, 0.99) < MILLISECOND, '99% connect within 1 ms of the answer')
      const identities = run.namegate.prefixes()
      const length = family === 4 ? 32 : 128
      const used = new Set(attempts.map(({ address }) => identities.get(`${address}/${length}`)))
      assert.equal(used.size, 1, 'all addresses are in the map, under one identity')
      assert.ok(!used.has(undefined))
    })
  }

  it('is what the client sends next: connect follows recv at once', async (t) => {
    if (toolMissing('strace')) return t.skip('strace is not installed')
    const calls = (await run.trace(5)).map((line) => /^\w+/.exec(line)?.[0])
    const after = calls.flatMap((call, i) => (call === 'recvfrom' ? [calls[i + 1]] : []))
    assert.deepEqual(after, Array(5).fill('connect'))
  })

  it('is not lost when connect does not block: the control of the late run', async (t) => {
    const attempts = await run.ask(4, 200, 150, 8)
    show(t, 'in time', attempts)
    assert.equal(attempts.filter(({ errno }) => errno !== 0).length, 0)
  })
})

describe('first packet with commits 30 ms late', { skip }, () => {
  let run: Run
  before(async () => {
    run = new Run()
    await run.start({ writer: { stalledMs: [30], isHeld: false } })
  })
  after(async () => await run.close())

  it('is lost for over 90% of 200 new names', async (t) => {
    const attempts = await run.ask(4, 200, 150, 8)
    show(t, 'late', attempts)
    assert.ok(attempts.filter(({ errno }) => errno !== 0).length > 180)
  })
})
