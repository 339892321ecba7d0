// `allowPolicy` translates `--allow TARGET[:PORT[/PROTO]]` (policy/allow-line.ts) into a policy document, as a person would write it in a
// file. The functions have no side effects.

import { formatPrefix } from '../core/ip.ts'
import type { Allow, AllowTarget } from '../policy/allow-line.ts'

/** The name of the endpoint that stands for the command. Policies select the endpoint by EXEC_LABELS. */
export const EXEC_NAME = 'exec'
export const EXEC_LABELS: Readonly<Record<string, string>> = { app: EXEC_NAME }

/** Returns one policy for all `--allow` options. Without an option, the command can ask no name and reach no address. */
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

/** Returns the fields of a policy document before its `spec`. */
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
 * Returns the policy for recording. Its selector matches every name, so that the names of every learned address are known.
 * A rule must open something, so this rule opens SCTP port 9. Programs do not use this port, and connections of SCTP are not recorded.
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
