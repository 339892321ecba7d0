// Writes the text of the files that `namegate up` makes: the configuration, the endpoints and the allow-list. Every choice stands in a
// comment with its reason, because the saved files are where a reader begins. The functions have no side effects.

import { dirname, join } from 'node:path'
import { formatSocketAddress } from '../../core/socket-address.ts'
import { shellWord } from '../shell-word.ts'
import { isOfCgroup, type UpEndpoint, type UpPlan } from './plan.ts'

/** Names of the files in the folder of a configuration. */
export const CONFIG_FILE = 'namegate.yaml'
export const SOCKET = 'admin.sock'
export const STATE_FOLDER = 'state'
export const ENDPOINTS_FILE = 'endpoints.yaml'
export const POLICIES_FOLDER = 'policies'
export const ALLOW_FILE = `${POLICIES_FOLDER}/up.allow`

/** Returns the path of the configuration whose allow-list (ALLOW_FILE) is `list`. */
export function configOfList(list: string): string {
  return join(dirname(dirname(list)), CONFIG_FILE)
}

export interface UpTexts {
  readonly plan: UpPlan
  /** The command line, for the first comment. */
  readonly command: string
  /** The word that starts namegate, for commands in comments. */
  readonly program: string
  /** Absolute path of the configuration. */
  readonly config: string
  readonly port: number
  readonly socket: string
  readonly pinPath: string
  /** Paths of further policies. */
  readonly policies: readonly string[]
  /** The values of `--allow`. */
  readonly allows: readonly string[]
  readonly audit: boolean
}

/** Returns the text of each file by its name. */
export function filesOf(texts: UpTexts): ReadonlyMap<string, string> {
  return new Map([
    [CONFIG_FILE, configText(texts)],
    [ENDPOINTS_FILE, endpointsText(texts.plan)],
    ...(texts.allows.length === 0 ? [] : [[ALLOW_FILE, allowText(texts.allows)] as const]),
  ])
}

function configText(texts: UpTexts): string {
  const { plan, command, program, port, socket, pinPath, policies, audit } = texts
  const { mode, datapath, servers, namespace } = plan
  const config = shellWord(texts.config)
  const where =
    namespace === undefined
      ? `Run it with: ${program} run --config ${config}`
      : `Run it inside the namespace: nsenter --net=${namespace} ${program} run --config ${config}`
  const lines = [
    `# Made by: ${command}`,
    `# ${where}`,
    '',
    `# ${mode.value}: ${mode.why}.`,
    'listeners:',
    `  - { port: ${port}, mode: ${mode.value}${isOfCgroup(plan) ? ', processes: cgroups' : ''} }`,
    `# The daemon adds the rules that bring queries to the listener. \`${program} intercept show --config ${config}\` prints them.`,
    'intercept: { on-start: true }',
    '',
    `# The daemon asks these servers: ${servers.why}.`,
    'upstreams:',
    `  servers: [${servers.value.map((each) => text(formatSocketAddress(each))).join(', ')}]`,
    '',
    '# A changed file of a policy takes effect within a second. *.allow files have one name a line.',
    'policies:',
    `  paths: [${[POLICIES_FOLDER, ...policies].map(text).join(', ')}]`,
    'endpoints:',
    `  files: [${ENDPOINTS_FILE}]`,
    '# Without a policy, a workload can reach nothing and ask for no name.',
    'default-egress: deny',
    'dns: { without-rules: deny }',
    ...(audit
      ? ['', '# Audit allows what policy denies, and reports it.', 'audit: { node: true }']
      : []),
    '',
    `# ${datapath.value}: ${datapath.why}.`,
    datapath.value === 'ebpf'
      ? `datapath: { kind: ebpf, ebpf: { pin-path: ${text(pinPath)} } }`
      : 'datapath: { kind: nftables }',
    '',
    '# What the daemon learned, for its next start. Commands find the daemon at the socket. Port 0 takes a free one.',
    `state: { directory: ${STATE_FOLDER} }`,
    `admin: { socket: ${text(socket)} }`,
    'metrics: { port: 0 }',
  ]
  return `${lines.join('\n')}\n`
}

function endpointsText({ name, endpoints }: UpPlan): string {
  const items = endpoints.value.map((each) => endpointText(name, each))
  return `# ${endpoints.why}.\nendpoints:\n${items.join('')}`
}

function endpointText(app: string, endpoint: UpEndpoint): string {
  return `  - ${fieldsOf(app, endpoint).join('\n    ')}\n`
}

/** Returns an endpoint as one line, without its indentation, for a list of endpoints in an existing file. */
export function endpointLine(app: string, endpoint: UpEndpoint): string {
  return `{ ${fieldsOf(app, endpoint).join(', ')} }`
}

function fieldsOf(app: string, endpoint: UpEndpoint): readonly string[] {
  const { name, addresses, interface: nic, cgroup } = endpoint
  return [
    `name: ${text(name)}`,
    ...(addresses.length === 0 ? [] : [`addresses: [${addresses.map(text).join(', ')}]`]),
    `labels: { app: ${text(app)} }`,
    ...(nic === undefined ? [] : [`interface: ${text(nic.name)}`, `hook: ${nic.hook}`]),
    ...(cgroup === undefined ? [] : [`cgroup: ${text(cgroup)}`]),
  ]
}

function allowText(allows: readonly string[]): string {
  const head = '# One name, pattern, address or prefix a line, with :PORT or :PORT/tcp if wanted.'
  return `${[head, ...allows].join('\n')}\n`
}

/** Returns a YAML scalar. A plain word stays as it is, any other text is quoted. */
export function text(value: string): string {
  return /^[A-Za-z][\w./-]*$/.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value)
}

/** Words that YAML reads as something else than text. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i
