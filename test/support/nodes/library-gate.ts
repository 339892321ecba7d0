// A library gate in the test's own process, an upstream that the test controls, and clients by source address.

import assert from 'node:assert/strict'
import {
  createGate,
  InvalidInputError,
  type Flow,
  type Gate,
  type GateOptions,
  type PolicyDocument,
} from '../../../src/library.ts'
import { DnsClient } from '../peers/dns-client.ts'
import { answerTo, FakeUpstream } from '../peers/upstream.ts'

/** The upstream of the running test. Test files share a process, so no hook of a file starts it. */
let upstream: FakeUpstream | undefined

export const job = { name: 'job', addresses: ['127.0.0.1'], labels: { app: 'job' } }

export function config(more: GateOptions['config'] = {}): NonNullable<GateOptions['config']> {
  assert.ok(upstream !== undefined, 'config() needs withUpstream or withGate around it')
  const servers = [`127.0.0.1:${upstream.port}`]
  return { upstreams: { servers }, 'unknown-clients': { wait: '0s' }, ...more }
}

/** Clients of a gate. They are closed with the gate. */
export class Asker {
  readonly gate: Gate
  readonly #clients = new Map<string, DnsClient>()

  constructor(gate: Gate) {
    this.gate = gate
  }

  /** `NOERROR`, or the code and extended error. */
  async ask(name: string, from = '127.0.0.1'): Promise<string> {
    const port = Number(this.gate.addresses[0]?.split(':')[1])
    const client = this.#clients.get(from) ?? (await DnsClient.open(port, from))
    this.#clients.set(from, client)
    const { rcode, ede } = await client.ask(name)
    return ede === undefined ? rcode : `${rcode} ${ede}`
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.close()
    this.#clients.clear()
    await this.gate.stop()
  }
}

/** Runs a test with an upstream that answers every name. */
export async function withUpstream(run: () => Promise<void>): Promise<void> {
  const server = await FakeUpstream.start((query) => query.send(answerTo(query, { ttl: 300 })))
  upstream = server
  try {
    await run()
  } finally {
    upstream = undefined
    await server.stop()
  }
}

/** Runs a test with a gate and its upstream. */
export async function withGate(
  options: GateOptions,
  run: (gate: Gate, ask: Asker['ask']) => Promise<void>,
): Promise<void> {
  await withUpstream(async () => {
    const asker = new Asker(await createGate({ config: config(), ...options }))
    try {
      await run(asker.gate, async (name, from) => await asker.ask(name, from))
    } finally {
      await asker.stop()
    }
  })
}

export function policyObject(name: string, matchName: string): PolicyDocument {
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name },
    spec: {
      endpointSelector: { matchLabels: { app: 'job' } },
      egress: [
        { toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchName }] } }] },
        { toFQDNs: [{ matchName }] },
      ],
    },
  }
}

export async function take(flows: AsyncIterable<Flow>, count: number): Promise<readonly Flow[]> {
  const taken: Flow[] = []
  if (count === 0) return taken
  for await (const flow of flows) if (taken.push(flow) === count) break
  return taken
}

/** A flow in short form. */
export function brief(flow: Flow): string {
  return 'name' in flow ? `${flow.kind} ${flow.endpoint} ${flow.name}` : flow.kind
}

export async function faultsOf(work: Promise<unknown>): Promise<readonly string[]> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof InvalidInputError, String(error))
  return error.message.split('\n')
}
