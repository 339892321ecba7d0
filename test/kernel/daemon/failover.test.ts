// Failover on real sockets and processes. One of two name servers is killed, stopped, restarted again and again, slow, answers only
// SERVFAIL, or becomes unreachable, while pods ask at a steady rate and never repeat a query. Every query gets an answer. The test prints
// times and asserts none; test/bench/failover.bench.ts measures them on a quiet machine.
// [docs/spec/correctness 4.2; docs/decisions/0008]

import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FailoverLab, SERVERS } from '../../support/labs/failover-lab.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { canUseSteadyDns, type LoadResult } from '../../support/peers/steady-dns.ts'

const skip = canUseNamegate() ?? canUseSteadyDns() ?? false

const RATE = 400
const SECONDS = 1.5
const SERVFAIL_CODE = 2
const BLACKHOLE = `add table inet hole
add chain inet hole in { type filter hook input priority 0; }
add rule inet hole in ip daddr ${SERVERS[0]} udp dport 53 drop
`

describe('namegate with two upstreams', { skip, concurrency: false }, () => {
  const state: { lab?: FailoverLab } = {}

  function site(): FailoverLab {
    assert.ok(state.lab !== undefined)
    return state.lab
  }

  before(async () => {
    state.lab = new FailoverLab()
    await state.lab.start()
  })
  after(async () => await state.lab?.close())

  /** Waits until both servers are up and namegate asks the first server of the configuration first. */
  async function begin(): Promise<void> {
    const lab = site()
    // A test that failed can have left the first server stopped.
    lab.signal(0, 'SIGCONT')
    await lab.until((servers) => servers.every((server) => server.state === 'up'))
    const leads = (await lab.upstreams())[0]?.first === true
    if (leads) return
    lab.signal(1, 'SIGKILL')
    await lab.servers[1]?.ended(2000)
    // The second server refuses the query, so namegate asks the first one.
    while ((await lab.upstreams())[0]?.first !== true) await dig('lead.test')
    await lab.serve(1)
    await lab.until((servers) => servers.every((server) => server.state === 'up'))
  }

  async function dig(name: string): Promise<string> {
    const [pod] = site().lab.pods
    assert.ok(pod !== undefined)
    const args = ['+tries=1', '+time=7', `@${pod.gateway4}`, name]
    return (await pod.host.run('dig', args)).stdout
  }

  /** On a busy machine, the failure that makes a server `down` can happen after the load. */
  async function untilFirstIsDown(): Promise<void> {
    await dig('after.test')
    await site().until(([dead, other]) => dead?.state === 'down' && other?.state === 'up')
  }

  function report(t: TestContext, result: LoadResult & { readonly recoveryMs: number }): void {
    const { sent, slow, recoveryMs, maxMs } = result
    t.diagnostic(
      `${sent} queries, ${slow} slower than 20 ms, the last of them ${recoveryMs.toFixed(0)} ms after; worst ${maxMs.toFixed(0)} ms`,
    )
  }

  function assertAllGood({ sent, noerror, servfail, other, lost }: LoadResult): void {
    assert.deepEqual(
      { noerror, servfail, other, lost },
      { noerror: sent, servfail: 0, other: 0, lost: 0 },
    )
  }

  // This test is the first that takes a server down: namegate logs at most a pair of lines a minute for a server that goes up and down.
  it('logs that a server fails, and that it answers again', async () => {
    await begin()
    const { daemon } = site().namegate
    site().signal(0, 'SIGKILL')
    // The query finds the fault. From then on namegate probes the server.
    await dig('told.test')
    await daemon.untilOutput(
      /WARN: upstream does not answer: .*"server":"192\.0\.2\.\d+","port":53/,
    )
    assert.doesNotMatch(daemon.stderr, /answers again/)
    await site().serve(0)
    await daemon.untilOutput(/INFO.*: upstream answers again .*"milliseconds":\d+/)
    assert.equal(daemon.stderr.match(/upstream does not answer/g)?.length, 1)
  })

  it('answers everything when the first is killed', async (t) => {
    await begin()
    const result = await site().loadWith(RATE, SECONDS, () => site().signal(0, 'SIGKILL'))
    assertAllGood(result)
    report(t, result)
    await untilFirstIsDown()
    assert.equal((await site().upstreams())[1]?.first, true)
    await site().serve(0)
    await site().until(([server]) => server?.state === 'up')
    assert.equal((await site().upstreams())[1]?.first, true, 'sticky')
  })

  it('answers everything when the first is stopped, and asks the first again when it continues', async (t) => {
    await begin()
    const result = await site().loadWith(RATE, SECONDS, () => site().signal(0, 'SIGSTOP'))
    assertAllGood(result)
    report(t, result)
    await untilFirstIsDown()
    site().signal(0, 'SIGCONT')
    await site().until(([server]) => server?.state === 'up')
  })

  it('answers everything when packets to the first vanish', async (t) => {
    await begin()
    const { internet } = site().lab
    const result = await site().loadWith(RATE, SECONDS, async () => {
      await internet.run('sh', ['-c', `echo '${BLACKHOLE}' | nft -f -`])
    })
    assertAllGood(result)
    report(t, result)
    await internet.run('nft', ['delete', 'table', 'inet', 'hole'])
    await site().until(([server]) => server?.state === 'up')
  })

  it('answers everything while the first is killed and restarted', async (t) => {
    await begin()
    const result = await site().loadWith(RATE, SECONDS * 2, async () => {
      for (let i = 0; i < 3; i++) {
        site().signal(0, i === 1 ? 'SIGSTOP' : 'SIGKILL')
        await sleep(200)
        await site().serve(0)
      }
    })
    assertAllGood(result)
    report(t, result)
  })

  it('answers everything when the first takes 3 s, and then asks the other first', async (t) => {
    await begin()
    const result = await site().loadWith(RATE, SECONDS, async () => {
      await site().serve(0, { delayMs: 3000 })
    })
    assertAllGood(result)
    report(t, result)
    await site().until(([, other]) => other?.first === true)
    await site().serve(0)
  })

  it('leaves a first that answers only SERVFAIL, and never reports it as down', async (t) => {
    await begin()
    await site().serve(0, { rcode: SERVFAIL_CODE })
    await site().until(([server]) => server?.state === 'up')
    const result = await site().load(RATE, SECONDS)
    assert.equal(result.noerror + result.servfail, result.sent)
    assert.ok(
      result.servfail >= 0 && result.servfail < result.sent / 4,
      `${result.servfail} SERVFAIL`,
    )
    t.diagnostic(`${result.servfail} of ${result.sent} queries got SERVFAIL from it`)
    const [wrong, other] = await site().upstreams()
    assert.equal(wrong?.state, 'up')
    assert.equal(other?.first, true)
    await site().serve(0)
  })

  it('answers SERVFAIL with an EDE when both are silent, and recovers with the first server that answers', async () => {
    await begin()
    for (const server of [0, 1]) site().signal(server, 'SIGSTOP')
    const silent = await dig('silent.test')
    assert.match(silent, /status: SERVFAIL/)
    assert.match(silent, /EDE: 22/)
    for (const server of [0, 1]) site().signal(server, 'SIGKILL')
    const refused = await dig('refused.test')
    assert.match(refused, /status: SERVFAIL/)
    assert.match(refused, /EDE: 23/)
    await site().serve(1)
    await site().until((servers) => servers.some((server) => server.state === 'up'))
    assert.match(await dig('back.test'), /status: NOERROR/)
    await site().serve(0)
  })
})
