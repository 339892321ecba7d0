// The one promise on the real kernel: namegate releases an answer only when its addresses are enforced. A client whose `connect` is the
// next system call after `recv` asks new names, and never loses a packet. With commits that are 30 ms late, the same client loses nearly
// all of its first packets, so the test can fail.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { FirstPacketLab } from '../../support/labs/first-packet-lab.ts'
import {
  percentile,
  retransmitted,
  show,
  toolMissing,
  type Attempt,
} from '../../support/peers/first-packets.ts'
import { canUseNamegate, type Namegate } from '../../support/labs/lab-namegate.ts'

const NAMES_4 = 2000
const NAMES_6 = 400
/** Names between two looks into the kernel's map. */
const CHUNK = 100
const MILLISECOND = 1_000_000

const skip = canUseNamegate() ?? (toolMissing('gcc') ? 'gcc is not installed' : false)

/** Reads the kernel's map before names are asked. */
class Run extends FirstPacketLab {
  /** Checks that no address is in the map yet. */
  override async ask(
    family: 4 | 6,
    count: number,
    waitMs: number,
    clients = 1,
  ): Promise<Attempt[]> {
    assertAbsent(this.namegate, family, this.coming(family, count))
    return await super.ask(family, count, waitMs, clients)
  }

  async askMany(family: 4 | 6, count: number): Promise<Attempt[]> {
    const attempts: Attempt[] = []
    assertAbsent(this.namegate, family, this.coming(family, count))
    for (let done = 0; done < count; done += CHUNK) {
      attempts.push(...(await this.ask(family, Math.min(CHUNK, count - done), 0)))
    }
    return attempts
  }

  /** The client's system calls for the next names, one a line. */
  async trace(count: number): Promise<string[]> {
    const log = join(this.folder, 'trace')
    const args = ['-qq', '-o', log, this.client, ...this.clientArgs(4, count, 0)]
    const { code, stderr } = await this.pod.host.run('strace', args)
    assert.equal(code, 0, stderr)
    this.passed(count)
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
      const before = await retransmitted(run.pod.host)
      const attempts = await run.askMany(family, names)
      show(t, `IPv${family}`, attempts)
      assert.deepEqual(
        attempts.filter(({ errno }) => errno !== 0),
        [],
      )
      assert.deepEqual(await retransmitted(run.pod.host), before)
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
