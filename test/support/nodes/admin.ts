// The admin API's state over a node without packets, and one HTTP request to a socket or port.

import { request, type IncomingHttpHeaders } from 'node:http'
import type { AdminState, AuditScope } from '../../../src/admin/state.ts'
import { FlowRing } from '../../../src/flows/record/flow-ring.ts'
import type { LimitUse } from '../../../src/telemetry/limits.ts'
import type { Node } from './node.ts'

/** The state, and the calls that it received. */
export interface AdminLab {
  readonly state: AdminState
  readonly audits: { readonly scope: AuditScope; readonly on: boolean | undefined }[]
}

const LIMITS: readonly LimitUse[] = [
  { limit: 'pairs', use: 80, bound: 100, hits: 3 },
  { limit: 'endpoints', use: 79, bound: 100, hits: 0 },
  { limit: 'queries-in-flight-per-client', use: undefined, bound: 1, hits: 9 },
]

/** The state of a node. `given` replaces parts, such as policy files. */
export function mkAdmin(node: Node, given: Partial<AdminState> = {}): AdminLab {
  const audits: { readonly scope: AuditScope; readonly on: boolean | undefined }[] = []
  const state: AdminState = {
    clock: node.clock,
    version: '1.2.3',
    startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
    core: node.core,
    policies: node.policies,
    emptyDenies: { texts: [] },
    transition: node.transition,
    flows: new FlowRing(),
    keptFlows: { read: keptLines },
    releases: { count: 0 },
    inheritedPolicies: () => node.restart.inheritedPolicies,
    endpoints: node.endpoints,
    resources: () => [],
    findResource: () => undefined,
    resourceTag: () => undefined,
    policyFiles: () => [
      { path: 'p.yaml', policies: node.policies.policies, state: 'in-force', faults: [] },
    ],
    faults: () => [],
    listeners: () => ['127.0.0.1:5300', '0.0.0.0:10053 (tproxy)'],
    upstreams: () => [
      {
        address: '192.0.2.53:53',
        answered: true,
        state: 'up',
        first: true,
        rttMs: 0.4,
        failures: 0,
      },
    ],
    interception: () => undefined,
    isIntercepting: () => undefined,
    isMissed: () => false,
    notReady: () => [],
    mode: () => node.recorder.mode.read(),
    forwardingRemedy: () => undefined,
    auditOf: () => ({ on: false, origin: undefined }),
    nodeAudit: () => ({ on: node.recorder.mode.read() === 'audit', origin: 'config' }),
    limits: () => LIMITS,
    metrics: () => Promise.resolve('namegate_x 1\n'),
    someMetrics: () => Promise.resolve('namegate_x 1\n'),
    ask: () => false,
    setMode: (mode) => mode !== 'pinned' && node.recorder.mode.set(mode),
    setAudit: (scope, on) => {
      audits.push({ scope, on })
      return scope.kind === 'endpoint' && scope.name === 'nobody'
        ? { kind: 'unknown-endpoint' }
        : { kind: 'ok', endpoints: ['a'] }
    },
    setResource: () => ({ kind: 'conflict', reason: 'not of this node' }),
    removeResource: () => ({ kind: 'conflict', reason: 'not of this node' }),
    detach: undefined,
    ...given,
  }
  node.onGone = (endpoint) => state.flows.former.add(endpoint)
  return { state, audits }
}

export interface HttpAnswer {
  readonly status: number
  readonly type: string
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

export interface HttpOptions {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends one request on its own connection. The message of an error names the request, its age and the status that had come. */
export async function http(
  where: { readonly socketPath: string } | { readonly port: number },
  path: string,
  { method = 'GET', body, headers: sentHeaders = {} }: HttpOptions = {},
): Promise<HttpAnswer> {
  const begin = performance.now()
  return await new Promise((resolve, reject) => {
    let status: number | undefined
    const sent = request(
      { ...where, path, method, headers: sentHeaders, agent: false },
      (response) => {
        status = response.statusCode
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => {
          const { headers } = response
          const type = headers['content-type'] ?? ''
          resolve({ status: response.statusCode ?? 0, type, text, headers })
        })
      },
    )
    sent.on('error', (error) => {
      const after = `${Math.round(performance.now() - begin)} ms`
      error.message += `: ${method} ${path} after ${after}, status ${status ?? 'none'}`
      reject(error)
    })
    sent.end(body)
  })
}

/** Flows on disk: an old one, and one that is younger than any in memory. */
export const KEPT = [
  '{"time":"2001-01-01T00:00:00.000Z","kind":"denied","name":"old.example"}\n',
  '{"time":"2999-01-01T00:00:00.000Z","kind":"denied","name":"new.example"}\n',
]

async function* keptLines(): AsyncIterable<string> {
  yield KEPT.join('')
  await Promise.resolve()
}
