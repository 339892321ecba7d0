// One client asks far more than its share of a slow upstream. It gets its share, the rest is answered at once, and other clients notice
// nothing [docs/spec/semantics 6; A22, A32]. The test asserts counts, and prints times. NAMEGATE_OVERLOAD=full runs the sizes of the target
// and also asserts times; it needs a quiet machine.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { endpointsText, policyText } from '../../support/nodes/daemon-files.ts'
import { FloodLab, type Asked, type Outcome } from '../../support/peers/flood.ts'
import { canUseLab } from '../../support/labs/lab.ts'

const FULL = process.env['NAMEGATE_OVERLOAD'] === 'full'
/** The flood is about ten times what the bound of one client admits (bound / delay). */
const SIZE = FULL
  ? { delayMs: 2000, perClient: 4096, rate: 20_000, seconds: 10 }
  : { delayMs: 1000, perClient: 256, rate: 2500, seconds: 3 }
const OTHER_RATE = 100
const FLOODER = '127.0.0.2'
const OTHER = '127.0.0.3'
const MS = 1000
const PASSED_OVER = 'namegate_dns_queries_total{verdict="passed_over"}'

function described({ count, within50ms, p50, p99, max }: Outcome): string {
  const share = count === 0 ? 100 : (within50ms / count) * 100
  return `${count}, p50 ${p50 / MS} ms, p99 ${p99 / MS} ms, max ${max / MS} ms, ${share.toFixed(2)}% within 50 ms`
}

function report(who: string, asked: Asked): string {
  const { sent, lost, noerror, servfail } = asked
  return `${who}: sent ${sent}, lost ${lost}; NOERROR ${described(noerror)}; SERVFAIL ${described(servfail)}`
}

describe('namegate run, overloaded', { skip: canUseLab() ?? false }, () => {
  let lab: FloodLab

  before(async () => {
    lab = new FloodLab({
      files: {
        'policy.yaml': policyText('all', ['*.flood.test']),
        'endpoints.yaml': endpointsText({ flooder: FLOODER, other: OTHER }),
      },
      config: { limits: `{ queries-in-flight-per-client: ${SIZE.perClient} }` },
    })
    await lab.start(SIZE.delayMs)
  })
  after(async () => await lab.close())

  // The first thousands of answers run in code that is not compiled yet. The target is about a daemon that has run for a while.
  before(async () => {
    if (FULL) await lab.ask({ from: FLOODER, letter: 's', rate: SIZE.rate, seconds: 5 })
  })

  it('gives a flooding client its share, answers the rest at once, and another client loses nothing', async (t) => {
    const { rate, seconds, perClient, delayMs } = SIZE
    const before = lab.kernelDrops()
    const passedBefore = await lab.metric(PASSED_OVER)
    const flood = lab.ask({ from: FLOODER, letter: 's', rate, seconds })
    const other = lab.ask({ from: OTHER, letter: 'f', rate: OTHER_RATE, seconds })
    const [flooded, served] = await Promise.all([flood, other])
    const drops = lab.kernelDrops() - before
    t.diagnostic(report(`flood at ${rate} q/s`, flooded))
    t.diagnostic(report(`other at ${OTHER_RATE} q/s`, served))
    const passedOver = (await lab.metric(PASSED_OVER)) - passedBefore
    t.diagnostic(`datagrams that the kernel dropped: ${drops}; queries passed over: ${passedOver}`)

    assert.equal(flooded.wrong + served.wrong, 0, 'no client gets the answer of another one')
    assert.ok(flooded.lost <= drops + passedOver, `${flooded.lost} lost without a count`)
    assert.equal(flooded.other.count, 0)
    assert.ok(flooded.noerror.count >= perClient, `${flooded.noerror.count} were accepted`)
    const rounds = Math.ceil((seconds * 1000) / delayMs) + 1
    assert.ok(flooded.noerror.count <= perClient * rounds, 'at most the bound at a time')
    assert.equal(
      served.noerror.count + served.lost,
      served.sent,
      'the other client is never refused',
    )
    assert.ok(served.lost <= drops, 'the other client loses only datagrams that the kernel dropped')
    if (!FULL) return
    assert.equal(served.lost, 0)
    assert.ok(served.noerror.p99 <= 20 * MS, 'p99 of the other client')
    assert.ok(flooded.noerror.p99 <= (delayMs + 20) * MS, 'p99 of accepted queries')
    const shed = flooded.sent - flooded.noerror.count
    assert.ok(flooded.servfail.within50ms >= shed * 0.99, 'refused within 50 ms')
  })
})
