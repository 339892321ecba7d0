// Recorded flows of three nodes as text, and `policy suggest` on them, in a folder of its own.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand, type Ran } from './command.ts'
import { namegate } from './command.ts'

const policySuggestCommand = namegate('policy suggest')

export interface Line {
  readonly kind?: string
  readonly endpoint?: string | null
  readonly app?: string
  readonly name?: string | null
  readonly peer?: string
  readonly protocol?: string
  readonly port?: number
  readonly names?: readonly string[]
  readonly labels?: readonly string[]
  readonly deniedBy?: 'rule' | 'default'
  readonly node?: string
  readonly time?: string
  readonly last?: string
  readonly count?: number
}

/** A line in the form of the daemon's files. */
export function mkLine(given: Line): string {
  const { app = 'shop', endpoint = `${app}-1`, peer, ...rest } = given
  const shared = {
    time: '2026-01-02T03:04:05.678Z',
    endpoint,
    endpointLabels: [`external:app=${app}`],
    ...rest,
  }
  const packet = { kind: 'audit', peer, protocol: 'TCP', port: 443, names: [], labels: WORLD }
  const flow = peer === undefined ? { kind: 'answered', ...shared } : { ...packet, ...shared }
  return `${JSON.stringify(flow)}\n`
}

export const WORLD = ['reserved:world', 'reserved:world-ipv4']

export const NODE_1 = [
  mkLine({ name: 'api.example.com', count: 3, last: '2026-01-02T04:00:00.000Z', node: 'n1' }),
  mkLine({ name: 'a.cdn.example', node: 'n1' }),
  mkLine({ peer: '192.0.2.1', names: ['api.example.com', 'other.example'], node: 'n1', count: 7 }),
  mkLine({ peer: '192.0.2.9', port: 9418, node: 'n1' }),
]
export const NODE_2 = [
  mkLine({ name: 'b.cdn.example', endpoint: 'shop-2', node: 'n2' }),
  mkLine({ name: 'time.example', endpoint: 'shop-2', node: 'n2' }),
  mkLine({
    peer: '192.0.2.3',
    protocol: 'UDP',
    port: 123,
    names: ['time.example'],
    endpoint: 'shop-2',
    node: 'n2',
  }),
  mkLine({ peer: '2001:db8::3', names: ['b.cdn.example'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '10.0.9.9', port: 5432, labels: ['k8s:app=db'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '169.254.169.254', port: 80, endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '10.0.0.1', port: 22, labels: ['reserved:host'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '192.0.2.7', deniedBy: 'rule', endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '192.0.2.1', protocol: 'ICMP', port: 0, endpoint: 'shop-2', node: 'n2' }),
]
export const NODE_3 = [
  mkLine({ name: 'c.cdn.example', node: 'n3' }),
  mkLine({ peer: '192.0.2.4', names: ['c.cdn.example'], node: 'n3' }),
  mkLine({ peer: '192.0.2.4', port: 80, names: ['c.cdn.example'], node: 'n3' }),
  mkLine({ kind: 'denied', name: 'evil.example', node: 'n3' }),
  mkLine({ kind: 'drop', peer: '192.0.2.66', node: 'n3' }),
  mkLine({ kind: 'upstream-failed', name: 'down.example', node: 'n3' }),
  mkLine({ app: 'batch', name: 'jobs.example', node: 'n3' }),
  mkLine({ kind: 'unknown-client', endpoint: null, name: 'x.example', node: 'n3' }),
]

/** A folder with the flows of the nodes as `n1.jsonl`, `n2.jsonl`, `n3.jsonl`. */
export class FlowFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'suggest-'))

  constructor() {
    this.put('n1.jsonl', NODE_1)
    this.put('n2.jsonl', NODE_2)
    this.put('n3.jsonl', NODE_3)
  }

  put(name: string, lines: readonly string[]): string {
    writeFileSync(join(this.path, name), lines.join(''))
    return join(this.path, name)
  }

  /** `--flows` with the files of these nodes. */
  nodes(...order: readonly string[]): readonly string[] {
    return ['--flows', ...order.map((name) => join(this.path, `${name}.jsonl`))]
  }

  remove(): void {
    rmSync(this.path, { recursive: true })
  }
}

export async function suggest(...args: readonly string[]): Promise<Ran> {
  return await runCommand(policySuggestCommand, ...args)
}
