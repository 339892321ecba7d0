// `--suggest`: the policy that would have allowed what was seen: every name that was asked, and for each name every
// protocol and port that one of its addresses was reached or refused at. Nothing is made wider than it was seen. YAML as a person
// would write it; `--policy` takes it. Pure.

import { parseMatchName } from '../policy/pattern.ts'
import { EXEC_LABELS } from './allow.ts'
import type { Recorder } from './record.ts'

/** What is in the text but for comments: the names and where they were reached. */
export function suggestPolicy({
  names,
  connections,
}: Pick<Recorder, 'names' | 'connections'>): string {
  const answered = [...names.values()].filter(({ verdict }) => verdict !== 'failed')
  const all = answered.map(({ name }) => name)
  const asked = all.filter(isPlain)
  const ports = new Map<string, Set<string>>()
  const nameless: string[] = []
  for (const { address, protocol, port, names: known } of connections.values()) {
    if (protocol !== 'TCP' && protocol !== 'UDP') continue
    if (known.size === 0) nameless.push(`${address} ${port}/${protocol}`)
    for (const name of [...known].filter(isPlain)) {
      const those = ports.get(name) ?? new Set<string>()
      ports.set(name, those.add(`${protocol} ${port}`))
    }
  }
  return [
    ...HEAD,
    ...nameless
      .sort()
      .map((place) => `# Left out, because no name was answered with the address: ${place}`),
    ...all
      .filter((name) => !isPlain(name))
      .map((name) => `# Left out, because no policy can name it: ${JSON.stringify(name)}`),
    ...(asked.length === 0 ? NOTHING : ['  egress:', ...dnsRule(asked.sort())]),
    ...[...ports.keys()]
      .sort()
      .flatMap((name) => nameRule(name, [...(ports.get(name) ?? [])].sort(byPort))),
    '',
  ].join('\n')
}

const HEAD: readonly string[] = [
  '# What one run of `namegate exec` asked and reached. Read it before you use it.',
  'apiVersion: cilium.io/v2',
  'kind: CiliumNetworkPolicy',
  'metadata:',
  '  name: exec-suggested',
  '  namespace: default',
  'spec:',
  '  endpointSelector:',
  '    matchLabels:',
  ...Object.entries(EXEC_LABELS).map(([key, value]) => `      ${key}: ${value}`),
]

const NOTHING: readonly string[] = ['  # Nothing was asked.', '  egress:', '    - {}']

function dnsRule(names: readonly string[]): readonly string[] {
  return [
    '    # Names that it asked for.',
    '    - toPorts:',
    '        - ports:',
    "            - { port: '53', protocol: ANY }",
    '          rules:',
    '            dns:',
    ...names.map((name) => `              - matchName: ${quote(name)}`),
  ]
}

function nameRule(name: string, ports: readonly string[]): readonly string[] {
  return [
    '    - toFQDNs:',
    `        - matchName: ${quote(name)}`,
    '      toPorts:',
    '        - ports:',
    ...ports.map((text) => {
      const [protocol, port] = text.split(' ')
      return `            - { port: '${port}', protocol: ${protocol} }`
    }),
  ]
}

function isPlain(name: string): boolean {
  return parseMatchName(name).kind === 'ok'
}

function byPort(a: string, b: string): number {
  return Number(a.split(' ')[1]) - Number(b.split(' ')[1]) || (a < b ? -1 : 1)
}

/** A name that policy's grammar takes needs no quotes unless YAML could take it for something else. */
function quote(name: string): string {
  return /^[a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z0-9]$/.test(name)
    ? name
    : `'${name.replaceAll("'", "''")}'`
}
