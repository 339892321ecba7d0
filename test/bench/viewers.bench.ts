// The latency of DNS while browsers show the web page: queries at a steady rate through a daemon without viewers and with 20 viewers of
// `/page/live`, in turn, so that the ratio is valid on a busy machine. Each figure is the median over the rounds.

import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { FailoverLab } from '../support/labs/failover-lab.ts'
import { runBench, type Figure } from './support/bench.ts'
import { median } from './support/measure.ts'

const VIEWERS = 20
const RATE = 1000
const SECONDS = 5
const ROUNDS = 5

interface Viewer {
  readonly sent: ClientRequest
  octets: number
}

async function view(socketPath: string): Promise<Viewer> {
  return await new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: '/page/live', agent: false })
    const viewer: Viewer = { sent, octets: 0 }
    sent.on('error', reject)
    sent.on('response', (response: IncomingMessage) => {
      if (response.statusCode !== 200) reject(new Error(`a viewer got ${response.statusCode}`))
      response.on('data', (chunk: Uint8Array) => (viewer.octets += chunk.length))
      response.on('error', () => undefined)
      resolve(viewer)
    })
    sent.end()
  })
}

async function run(): Promise<readonly Figure[]> {
  const lab = new FailoverLab()
  try {
    await lab.start()
    return await measure(lab)
  } finally {
    await lab.close()
  }
}

async function measure(lab: FailoverLab): Promise<readonly Figure[]> {
  const socketPath = join(lab.namegate.folder, 'admin.sock')
  const p50: [number[], number[]] = [[], []]
  const p99: [number[], number[]] = [[], []]
  const octets: number[] = []
  const load = async (shown: 0 | 1): Promise<void> => {
    const { sent, noerror, p50Ms, p99Ms } = await lab.load(RATE, SECONDS)
    if (noerror !== sent) throw new Error(`${sent - noerror} of ${sent} queries were not answered`)
    p50[shown].push(p50Ms)
    p99[shown].push(p99Ms)
  }
  await lab.load(RATE, SECONDS)
  for (let round = 0; round < ROUNDS; round++) {
    await load(0)
    const viewers = await Promise.all(Array.from({ length: VIEWERS }, () => view(socketPath)))
    await load(1)
    for (const { sent } of viewers) sent.destroy()
    octets.push(viewers.reduce((sum, viewer) => sum + viewer.octets, 0) / VIEWERS / SECONDS)
  }
  return [
    ...['without viewers', `with ${VIEWERS} viewers`].flatMap((name, shown): readonly Figure[] => [
      { name: `p50 ${name}`, unit: 'ms', ...spreadOf(p50[shown] ?? []) },
      { name: `p99 ${name}`, unit: 'ms', ...spreadOf(p99[shown] ?? []) },
    ]),
    {
      name: 'p99 as a multiple',
      unit: 'x',
      ...spreadOf(p99[1].map((p, i) => p / (p99[0][i] ?? NaN))),
    },
    { name: 'octets a second to each viewer', unit: 'B', ...spreadOf(octets.map(Math.round)) },
  ]
}

function spreadOf(values: readonly number[]): Pick<Figure, 'value' | 'spread'> {
  return { value: median(values), spread: [Math.min(...values), Math.max(...values)] }
}

await runBench({
  name: 'viewers',
  about: `DNS at ${RATE} queries a second while ${VIEWERS} browsers show the page`,
  run,
})
