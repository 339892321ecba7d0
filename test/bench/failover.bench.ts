// One of two upstreams fails under 5,000 queries a second from four clients that never ask twice: once killed, so that the kernel refuses
// packets to it, and once stopped, so that it never answers. Every query must end with NOERROR.
//   node --import tsx test/bench/failover.bench.ts [RATE] [SECONDS]

import { FailoverLab } from '../support/labs/failover-lab.ts'

const RATE = Number(process.argv[2] ?? 5000)
const SECONDS = Number(process.argv[3] ?? 9)

const lab = new FailoverLab()
try {
  await lab.start()
  const rows: Record<string, unknown> = {}
  const still = await lab.load(RATE, 3)
  rows['both up'] = pick({ ...still, recoveryMs: 0 })
  for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
    const states = await lab.upstreams()
    const first = states.findIndex((server) => server.first)
    rows[signal] = pick(await lab.loadWith(RATE, SECONDS, () => lab.signal(first, signal)))
    await lab.serve(first)
    await lab.until((servers) => servers.every(({ state }) => state === 'up'))
  }
  console.table(rows)
} finally {
  await lab.close()
}

function pick(result: Awaited<ReturnType<FailoverLab['loadWith']>>) {
  const { sent, noerror, servfail, lost, slow, recoveryMs, p50Ms, p99Ms, maxMs } = result
  const round = (ms: number): number => Math.round(ms * 100) / 100
  return {
    sent,
    noerror,
    servfail,
    lost,
    'slower than 20 ms': slow,
    'recovery ms': round(recoveryMs),
    'p50 ms': round(p50Ms),
    'p99 ms': round(p99Ms),
    'max ms': round(maxMs),
  }
}
