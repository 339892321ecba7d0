// `--allow PATTERN[:PORT[/PROTO]]`: its text -> what it allows, and what was given that way -> a policy document, the same
// that a person would write in a file. A fault says where in the text it is, counted from 1. Pure.

import { parsePattern, type Pattern } from '../policy/pattern.ts'

/** The endpoint that the command is; policies select it by `LABELS`. */
export const EXEC_NAME = 'exec'
export const EXEC_LABELS: Readonly<Record<string, string>> = { app: EXEC_NAME }

export type AllowProtocol = 'TCP' | 'UDP'

/** Names, with the port and the protocols of connections to them. */
export interface Allow {
  readonly pattern: Pattern
  /** 0: every port. */
  readonly port: number
  readonly protocols: readonly AllowProtocol[]
}

export type AllowResult =
  | { readonly kind: 'ok'; readonly allow: Allow }
  | { readonly kind: 'bad'; readonly column: number; readonly reason: string }

const BOTH: readonly AllowProtocol[] = ['TCP', 'UDP']

export function parseAllow(text: string): AllowResult {
  const colon = text.indexOf(':')
  const patternText = colon < 0 ? text : text.slice(0, colon)
  const parsed = parsePattern(patternText, { allowStar: true })
  if (parsed.kind === 'bad') {
    return { kind: 'bad', column: columnOf(patternText), reason: parsed.reason }
  }
  const { pattern } = parsed
  if (colon < 0) return { kind: 'ok', allow: { pattern, port: 0, protocols: BOTH } }
  const rest = text.slice(colon + 1)
  const [portText = '', protocolText, more] = rest.split('/')
  const port = /^[0-9]{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535) {
    const reason = `found ${JSON.stringify(portText)}, expected a port from 1 to 65535`
    return { kind: 'bad', column: colon + 2, reason }
  }
  if (protocolText === undefined) return { kind: 'ok', allow: { pattern, port, protocols: BOTH } }
  const protocol = BOTH.find((each) => each === protocolText.toUpperCase())
  if (protocol === undefined || more !== undefined) {
    const found = rest.slice(portText.length + 1)
    const reason = `found ${JSON.stringify(found)}, expected tcp or udp`
    return { kind: 'bad', column: colon + portText.length + 3, reason }
  }
  return { kind: 'ok', allow: { pattern, port, protocols: [protocol] } }
}

/** Where a pattern goes wrong: its first odd character, its first empty label, else its beginning. */
function columnOf(text: string): number {
  const odd = /[^a-zA-Z0-9_.*\-\s]|(?<=\S)\s(?=\s*\S)/u.exec(text)
  if (odd !== null) return odd.index + 1
  const empty = /^\.|\.\./.exec(text)
  return empty === null ? 1 : empty.index + empty[0].length
}

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
  const names = [...new Set(allows.map(({ pattern }) => pattern.text))]
  const asked = {
    toPorts: [
      {
        ports: [{ port: '53', protocol: 'ANY' }],
        rules: { dns: names.map((name) => ({ matchPattern: name })) },
      },
    ],
  }
  const reached = allows.map(({ pattern, port, protocols }) => ({
    toFQDNs: [{ matchPattern: pattern.text }],
    toPorts: [{ ports: protocols.map((protocol) => ({ port: String(port), protocol })) }],
  }))
  return [asked, ...reached]
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
