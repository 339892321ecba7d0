// Writes the text of the files that `namegate init` makes for a host. Each setting has a comment that says what was found and what the
// setting does. With these files a daemon starts, intercepts nothing and enforces nothing until endpoints are listed. The functions have
// no side effects.

import { formatSocketAddress } from '../../core/socket-address.ts'
import { CONFIG_FILE, ENDPOINTS_FILE, POLICIES_FOLDER, text } from './files.ts'
import type { Choice, Resolvers, UpEndpoint } from './plan.ts'

export interface InitFacts {
  readonly datapath: Choice<'ebpf' | 'nftables'>
  /** Undefined: the files are for any host. */
  readonly resolvers: Resolvers | undefined
  /** Interfaces of this host behind which workloads are now. */
  readonly found: readonly UpEndpoint[]
}

/** Returns the text of each file by its name. */
export function initFiles(facts: InitFacts): ReadonlyMap<string, string> {
  return new Map([
    [CONFIG_FILE, configText(facts)],
    [ENDPOINTS_FILE, endpointsText(facts.found)],
    [`${POLICIES_FOLDER}/README`, POLICIES_TEXT],
  ])
}

function configText({ datapath, resolvers }: InitFacts): string {
  return `# Configuration of namegate on this host, as \`namegate init\` makes it. \`namegate config schema\` prints every key with its default.
# After a change of this file: namegate config check --config FILE, then restart the daemon. Files of policies and endpoints are read
# again when they change.

# Queries of the workloads in ${ENDPOINTS_FILE} come here, whatever server they ask. The rules appear with the first endpoint that has
# an interface. Other listeners: { address: 127.0.0.1, port: 53, mode: explicit } for clients that use namegate as their resolver.
listeners:
  - { port: 10053, mode: tproxy }
intercept:
  on-start: true
  # After an orderly stop, the queries of workloads get no answer. With \`open\` they reach the servers directly.
  on-exit: closed

# namegate asks these servers. \`system\` means those of ${serversText(resolvers)}.
# Others have the form "9.9.9.9:53" or "[2620:fe::fe]:53".
upstreams:
  servers: [system]

# CiliumNetworkPolicy files, NetworkPolicy files, and *.allow files with one name a line.
policies:
  paths: [${POLICIES_FOLDER}]
# Workloads to which policy applies.
endpoints:
  files: [${ENDPOINTS_FILE}]
# A workload that no policy selects can reach everything. With \`deny\` it can reach nothing.
default-egress: allow
# To observe first: true allows and reports what policy denies (\`namegate flows --verdict audit\`).
audit:
  node: false

# ${datapath.value}: ${datapath.why}.
datapath:
  kind: ${datapath.value}

# The state survives restarts. Commands find the daemon at the socket. /metrics, /healthz and /readyz are at 127.0.0.1:9465.
state:
  directory: /var/lib/namegate
admin:
  socket: /run/namegate/admin.sock
metrics:
  address: 127.0.0.1
  port: 9465
log:
  format: json
`
}

function serversText(resolvers: Resolvers | undefined): string {
  if (resolvers === undefined) return '/etc/resolv.conf'
  const servers = resolvers.servers.map(formatSocketAddress).join(', ')
  return `${resolvers.file}: ${servers || 'no server: name one here'}`
}

const ENDPOINTS_HEAD = `# Workloads to which policy applies: each has addresses or prefixes that no other has, labels that policies select, and the interface
# of this host where its packets arrive (with eBPF also \`cgroup: PATH\` in place of interface and addresses). One that \`namegate init\`
# found begins with #: remove the # to protect it. \`namegate get endpoints\` shows whether each is enforced.
`

function endpointsText(found: readonly UpEndpoint[]): string {
  const items = found.map(({ name, addresses, interface: nic }) =>
    itemText(text(name), addresses.map(text), text(nic?.name ?? '')),
  )
  const example = itemText('shop', ['10.0.1.5', '"fd00::5"'], 'veth1')
  return `${ENDPOINTS_HEAD}endpoints: [\n${items.join('') || example}  ]\n`
}

/** Each item is one line that ends with a comma, so that the list is valid with and without it. */
function itemText(name: string, addresses: readonly string[], nic: string): string {
  const labels = `{ app: ${name} }`
  return `  # { name: ${name}, addresses: [${addresses.join(', ')}], labels: ${labels}, interface: ${nic} },\n`
}

const POLICIES_TEXT = `Policies of this host. namegate reads *.yaml, *.yml, *.json and *.allow here, and again after a change.

web.allow, for every workload:            or web.yaml, for workloads with the label app=shop:

  example.com                             apiVersion: cilium.io/v2
  *.example.org:443/tcp                   kind: CiliumNetworkPolicy
  192.0.2.0/24                            metadata: { name: web }
                                          spec:
                                            endpointSelector: { matchLabels: { app: shop } }
                                            egress:
                                              - toPorts: [{ ports: [{ port: "53", protocol: ANY }],
                                                            rules: { dns: [{ matchPattern: "*" }] } }]
                                              - toFQDNs: [{ matchName: example.com }]

'namegate policy check FILE' validates a file. 'namegate policy suggest' writes one from what workloads did.
`
