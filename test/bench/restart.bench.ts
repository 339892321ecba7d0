// A start over a million learned entries, in the state folder and in the kernel's maps, after SIGKILL: until the first query has its answer,
// and until everything is restored. The program is the built one. The measuring parts exist before it and need little of the processor: one
// client's socket, and a look at the status ten times a second.

import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemBootClock, systemClock } from '../../src/core/clock.ts'
import { wireName } from '../support/messages.ts'
import { podLab, startHelper } from '../support/labs/lab-pod.ts'
import { Namegate } from '../support/labs/lab-namegate.ts'
import { openState } from '../../src/state/state-store.ts'
import { runBench, type Figure } from './support/bench.ts'
import { BuiltTree } from './support/built-tree.ts'

const PAIRS = Number(process.env['BENCH_PAIRS'] ?? 1_000_000)
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: wild }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '**.test' }] }]
`
const LIMITS = [
  'pairs-per-endpoint',
  'names-per-wildcard',
  'wildcard-names-per-endpoint',
  'pairs',
].map((key) => `${key}: ${PAIRS + 1000}`)
const HOUR_S = 3600
const ASK_MS = 20
/** The time between two looks at the status. Each costs the measured daemon one or two milliseconds. */
const LOOK_MS = 100

interface Status {
  readonly ready: boolean
  readonly restart: { readonly phase: string; readonly restored: number } | null
}

/** The daemon's status. Undefined while it does not answer. */
async function statusOf(socketPath: string): Promise<Status | undefined> {
  return await new Promise((resolve) => {
    const asked = request({ socketPath, path: '/v1/status' }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(parts).toString())))
    })
    asked.on('error', () => resolve(undefined))
    asked.end()
  })
}

/** Adds entries of the endpoint that the folder knows. */
async function fill(folder: string): Promise<void> {
  const fail = ({ message }: { message: string }): never => {
    throw new Error(message)
  }
  const { read, store } = openState({
    folder,
    clock: systemClock,
    boot: systemBootClock,
    pairsMax: PAIRS,
    onFault: fail,
  })
  const saved = read.state
  const image = store.beginImage()
  if (saved === undefined || image === undefined) throw new Error('no state to begin with')
  image.numbers(saved.numbers)
  for (const [key, text] of saved.endpoints) image.document({ kind: 'endpoint', key, text })
  const endpoint = Number([...saved.endpoints.keys()][0])
  const until = Math.floor(systemBootClock.seconds()) + HOUR_S
  const octets = new Uint8Array(4)
  for (let row = 1; row <= PAIRS; row++) {
    while (image.isFull) await sleep(1)
    new DataView(octets.buffer).setUint32(0, 0x0b00_0000 + row)
    const wire = wireName(`n${row}.bench.test`)
    image.pair({
      row,
      endpoint,
      until,
      grace: 60,
      family: 4,
      octets,
      addressAt: 0,
      wire,
      nameAt: 0,
      nameLength: wire.length,
    })
  }
  image.end()
  await store.close()
}

async function run(): Promise<readonly Figure[]> {
  const tree = new BuiltTree('restart')
  const { command } = tree
  const lab = podLab()
  const [pod] = lab.pods
  if (pod === undefined) throw new Error('a pod is wanted')
  const namegate = new Namegate(lab, {
    policies: { 'wild.yaml': POLICY },
    endpoints: ['{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'],
    config: `limits: { ${LIMITS.join(', ')} }`,
  })
  const socket = join(namegate.folder, 'admin.sock')
  const until = async (is: (status: Status) => boolean): Promise<Status> => {
    for (;;) {
      const status = await statusOf(socket)
      if (status !== undefined && is(status)) return status
      await sleep(LOOK_MS)
    }
  }
  const isBack = ({ restart }: Status): boolean =>
    restart?.phase === 'grace' || restart?.phase === 'done'
  try {
    await lab.startNameServer({ fresh: { 'new.test': { first4: '198.18.100.0' } } })
    await namegate.start({ command })
    await namegate.stop()
    await fill(join(namegate.folder, 'state'))
    await namegate.start({ command })
    await until(isBack)
    await namegate.kill()
    const names = [`${pod.gateway4}`, 'n%.new.test', `${ASK_MS}`]
    const asker = await startHelper(pod.host, 'kept-asker.ts', names)
    const began = performance.now()
    namegate.launch(command)
    await asker.untilOutput(/ NOERROR /)
    const answered = performance.now() - began
    const { restart } = await until(isBack)
    const back = performance.now() - began
    return [
      { name: 'pairs back', value: restart?.restored ?? 0, unit: '' },
      { name: 'first query answered after', value: answered / 1000, unit: 's', limit: 2 },
      { name: 'all restored after', value: back / 1000, unit: 's', limit: 5 },
    ]
  } finally {
    await namegate.close()
    await lab.close()
    tree.close()
  }
}

await runBench({ name: 'restart', about: `a start over ${PAIRS} pairs, eBPF`, run })
