// Translates `--allow TARGET[:PORT[/PROTO]]` (policy/allow-line.ts) into a policy document, the same that a person would write in a
// file. Pure.

import { formatPrefix } from '../core/ip.ts'
import type { Allow, AllowTarget } from '../policy/allow-line.ts'

/** The endpoint that the command is; policies select it by `LABELS`. */
export const EXEC_NAME = 'exec'
export const EXEC_LABELS: Readonly<Record<string, string>> = { app: EXEC_NAME }

/** The policy of all that was allowed; without any the command may ask and reach nothing. */
export function allowPolicy(allows: readonly Allow[]): unknown {
  return {
    ...policyHead('exec-allow'),
    spec: {
      description: 'What --allow says',
      endpointSelector: { matchLabels: EXEC_LABELS },
      egress: allows.length === 0 ? [{}] : rulesOf(allows),
    },
  }
}

export function policyHead(name: string) {
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name, namespace: 'default' },
  } as const
}

function rulesOf(allows: readonly Allow[]): readonly unknown[] {
  const patterns = allows.flatMap(({ target }) =>
    target.kind === 'name' ? [target.pattern.text] : [],
  )
  const asked = {
    toPorts: [
      {
        ports: [{ port: '53', protocol: 'ANY' }],
        rules: { dns: [...new Set(patterns)].map((name) => ({ matchPattern: name })) },
      },
    ],
  }
  const reached = allows.map(({ target, port, protocols }) => ({
    ...peerOf(target),
    toPorts: [{ ports: protocols.map((protocol) => ({ port: String(port), protocol })) }],
  }))
  return patterns.length === 0 ? reached : [asked, ...reached]
}

function peerOf(target: AllowTarget): Readonly<Record<string, unknown>> {
  return target.kind === 'name'
    ? { toFQDNs: [{ matchPattern: target.pattern.text }] }
    : { toCIDR: [formatPrefix(target.prefix)] }
}

/**
 * For recording: a selector that matches every name, so that all that is learned can be told by its name. What it opens
 * is a port that nothing uses, of a protocol that is not recorded.
 */
export function recordingPolicy(): unknown {
  return {
    ...policyHead('exec-record'),
    spec: {
      description: 'Names every address that is learned',
      endpointSelector: { matchLabels: EXEC_LABELS },
      egress: [
        {
          toFQDNs: [{ matchPattern: '*' }],
          toPorts: [{ ports: [{ port: '9', protocol: 'SCTP' }] }],
        },
      ],
    },
  }
}
