// Examples of Cilium's documentation about egress (policy language, layers 3, 4 and 7, deny policies, DNS-based policies, Kubernetes
// constructs), rewritten. Each has a title, a policy, and packets or questions with the verdict of the text. `from` is the endpoint that
// sends.

import { ccnp, cnp, knp, type Example } from './example.ts'

const FRONT = 'endpointSelector: { matchLabels: { role: front } }\n'
const ASK_ALL =
  '- toEndpoints: [{ matchLabels: { "k8s:io.kubernetes.pod.namespace": kube-system, k8s-app: kube-dns } }]\n  toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "*" }] } }]'

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Layer 3: labels, an egress rule from one role to another',
    policies: cnp(`${FRONT}egress: [{ toEndpoints: [{ matchLabels: { role: back } }] }]`),
    from: 'front',
    allowed: ['back 80/6', 'back 53/17'],
    denied: ['db 80/6', '203.0.113.1 80/6', 'other-back 80/6'],
  },
  {
    title: 'Layer 3: an empty peer selector is every endpoint of the namespace',
    policies: cnp(`${FRONT}egress: [{ toEndpoints: [{}] }]`),
    from: 'front',
    allowed: ['back 80/6', 'db 80/6'],
    denied: ['other-back 80/6', '203.0.113.1 80/6', 'host 80/6'],
  },
  {
    title: 'Layer 3: an empty rule section turns default deny on',
    policies: cnp(`${FRONT}egress: [{}]`),
    from: 'front',
    allowed: [],
    denied: ['back 80/6', '203.0.113.1 80/6', 'host 80/6'],
  },
  {
    title: 'Layer 3: an endpoint that no policy selects is not in default deny',
    policies: cnp(`${FRONT}egress: [{}]`),
    from: 'db',
    allowed: ['back 80/6', '203.0.113.1 80/6'],
    denied: [],
  },
  {
    title: 'Layer 3: entities, access to the own host',
    policies: cnp(`${FRONT}egress: [{ toEntities: [host] }]`),
    from: 'front',
    allowed: ['host 22/6'],
    denied: ['back 22/6', '203.0.113.1 22/6'],
  },
  {
    title: 'Layer 3: entities, everything outside of the cluster',
    policies: cnp(`${FRONT}egress: [{ toEntities: [world] }]`),
    from: 'front',
    allowed: ['203.0.113.1 443/6', '2001:db8::1 443/6'],
    denied: ['back 443/6', 'host 443/6'],
  },
  {
    title: 'Layer 3: entities, one family of the world',
    policies: cnp(`${FRONT}egress: [{ toEntities: [world-ipv4] }]`),
    from: 'front',
    allowed: ['203.0.113.1 443/6'],
    denied: ['2001:db8::1 443/6'],
  },
  {
    title: 'Layer 3: entities, the cluster without the world',
    policies: cnp(`${FRONT}egress: [{ toEntities: [cluster] }]`),
    from: 'front',
    allowed: ['back 443/6', 'other-back 443/6', 'host 443/6', 'lake 443/6'],
    denied: ['203.0.113.1 443/6'],
  },
  {
    title: 'Layer 3: CIDR, with exceptions inside the prefix',
    policies: cnp(
      `${FRONT}egress: [{ toCIDR: [198.51.100.7/32] }, { toCIDRSet: [{ cidr: 100.64.0.0/10, except: [100.96.0.0/12] }] }]`,
    ),
    from: 'front',
    allowed: ['198.51.100.7 1/6', '100.64.1.1 1/6', '100.112.0.1 1/17'],
    denied: ['198.51.100.8 1/6', '100.96.0.1 1/6', '100.111.255.255 1/6'],
  },
  {
    title: 'Layer 3: CIDR rules do not select endpoints of the cluster',
    policies: cnp(`${FRONT}egress: [{ toCIDR: [0.0.0.0/0] }]`),
    from: 'front',
    allowed: ['203.0.113.1 80/6'],
    denied: ['back 80/6', '2001:db8::1 80/6'],
  },
  {
    title: 'Layer 3: DNS based, a name and a pattern, with the questions allowed',
    policies: cnp(
      `${FRONT}egress:\n${ASK_ALL}\n- toFQDNs: [{ matchName: site.example }, { matchPattern: "*.cdn.example" }]`,
    ),
    from: 'front',
    learned: {
      'site.example': ['203.0.113.10'],
      'a.cdn.example': ['203.0.113.11', '2001:db8::b'],
      'other.example': ['203.0.113.12'],
    },
    allowed: ['203.0.113.10 443/6', '203.0.113.11 80/6', '2001:db8::b 443/6'],
    denied: ['203.0.113.12 443/6', '203.0.113.13 443/6'],
    mayAsk: ['site.example', 'other.example'],
  },
  {
    title: 'Layer 3: DNS based, a star matches no dot',
    policies: cnp(`${FRONT}egress: [{ toFQDNs: [{ matchPattern: "*.site.example" }] }]`),
    from: 'front',
    learned: { 'a.site.example': ['203.0.113.20'], 'a.b.site.example': ['203.0.113.21'] },
    allowed: ['203.0.113.20 443/6'],
    denied: ['203.0.113.21 443/6'],
  },
  {
    title: 'Layer 3: DNS based, a leading double star is any depth',
    policies: cnp(`${FRONT}egress: [{ toFQDNs: [{ matchPattern: "**.site.example" }] }]`),
    from: 'front',
    learned: { 'a.b.site.example': ['203.0.113.22'], 'site.example': ['203.0.113.23'] },
    allowed: ['203.0.113.22 443/6'],
    denied: ['203.0.113.23 443/6'],
  },
  {
    title: 'Layer 7: DNS, the names that can be asked',
    policies: cnp(
      `${FRONT}egress: [{ toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchName: site.example }, { matchPattern: "*.cdn.example" }] } }] }]`,
    ),
    from: 'front',
    allowed: [],
    denied: ['203.0.113.1 53/17', '203.0.113.1 443/6'],
    mayAsk: ['site.example', 'a.cdn.example'],
    mayNotAsk: ['www.site.example', 'a.b.cdn.example', 'cdn.example'],
  },
  {
    title: 'DNS: names together with a port',
    policies: cnp(
      `${FRONT}egress: [{ toFQDNs: [{ matchName: api.example }], toPorts: [{ ports: [{ port: "443", protocol: TCP }] }] }]`,
    ),
    from: 'front',
    learned: { 'api.example': ['203.0.113.30'] },
    allowed: ['203.0.113.30 443/6'],
    denied: ['203.0.113.30 80/6', '203.0.113.30 443/17'],
  },
  {
    title: 'Layer 4: one port of a protocol, at any peer',
    policies: cnp(`${FRONT}egress: [{ toPorts: [{ ports: [{ port: "80", protocol: TCP }] }] }]`),
    from: 'front',
    allowed: ['back 80/6', '203.0.113.1 80/6', 'host 80/6'],
    denied: ['back 443/6', 'back 80/17'],
  },
  {
    title: 'Layer 4: a range of ports',
    policies: cnp(
      `${FRONT}egress: [{ toPorts: [{ ports: [{ port: "80", endPort: 444, protocol: TCP }] }] }]`,
    ),
    from: 'front',
    allowed: ['back 80/6', 'back 444/6', 'back 100/6'],
    denied: ['back 79/6', 'back 445/6'],
  },
  {
    title: 'Layer 4: labels and a port at once',
    policies: cnp(
      `${FRONT}egress: [{ toEndpoints: [{ matchLabels: { role: back } }], toPorts: [{ ports: [{ port: "80", protocol: TCP }] }] }]`,
    ),
    from: 'front',
    allowed: ['back 80/6'],
    denied: ['back 81/6', 'db 80/6', '203.0.113.1 80/6'],
  },
  {
    title: 'Layer 4: a prefix and a port at once',
    policies: cnp(
      `${FRONT}egress: [{ toCIDR: [192.0.2.0/24], toPorts: [{ ports: [{ port: "80", protocol: TCP }] }] }]`,
    ),
    from: 'front',
    allowed: ['192.0.2.200 80/6'],
    denied: ['192.0.2.200 443/6', '203.0.113.1 80/6'],
  },
  {
    title: 'Layer 4: a port by its name',
    policies: cnp(
      `${FRONT}egress: [{ toEndpoints: [{ matchLabels: { role: db } }], toPorts: [{ ports: [{ port: pg, protocol: TCP }] }] }]`,
    ),
    from: 'front',
    allowed: ['db 5432/6'],
    denied: ['db 5433/6', 'back 5432/6'],
  },
  {
    title: 'Layer 4: any protocol is TCP, UDP and SCTP, not ICMP',
    policies: cnp(`${FRONT}egress: [{ toPorts: [{ ports: [{ port: "0", protocol: ANY }] }] }]`),
    from: 'front',
    allowed: ['back 9/6', 'back 9/17', 'back 9/132'],
    denied: ['back 0/1'],
  },
  {
    title: 'Deny policies: deny wins over allow',
    policies: ccnp(
      'endpointSelector: {}\negress: [{ toEntities: [all] }]\negressDeny: [{ toEndpoints: [{ matchLabels: { role: db } }] }]',
    ),
    from: 'front',
    allowed: ['back 80/6', '203.0.113.1 80/6'],
    denied: ['db 80/6'],
  },
  {
    title: 'Deny policies: a prefix inside an allowed one',
    policies: ccnp(
      'endpointSelector: {}\negress: [{ toCIDR: [203.0.0.0/16] }]\negressDeny: [{ toCIDRSet: [{ cidr: 203.0.113.0/24, except: [203.0.113.128/25] }] }]',
    ),
    from: 'front',
    allowed: ['203.0.5.1 80/6', '203.0.113.200 80/6'],
    denied: ['203.0.113.1 80/6'],
  },
  {
    title: 'Deny policies: one port of everything',
    policies: ccnp(
      'endpointSelector: {}\negress: [{ toEntities: [all] }]\negressDeny: [{ toPorts: [{ ports: [{ port: "25", protocol: TCP }] }] }]',
    ),
    from: 'front',
    allowed: ['203.0.113.1 26/6', '203.0.113.1 25/17'],
    denied: ['203.0.113.1 25/6', 'back 25/6'],
  },
  {
    title: 'Enforcement: enableDefaultDeny false adds a rule without default deny',
    policies: ccnp(
      'endpointSelector: {}\nenableDefaultDeny: { egress: false }\negressDeny: [{ toCIDR: [198.51.100.0/24] }]',
    ),
    from: 'front',
    allowed: ['203.0.113.1 80/6', 'back 80/6'],
    denied: ['198.51.100.1 80/6'],
  },
  {
    title: 'Rule basics: expressions of an endpoint selector',
    policies: ccnp(
      'endpointSelector: { matchExpressions: [{ key: "k8s:io.kubernetes.pod.namespace", operator: NotIn, values: [kube-system] }, { key: role, operator: Exists }] }\negress: [{ toEndpoints: [{ matchExpressions: [{ key: role, operator: In, values: [back, db] }] }] }]',
    ),
    from: 'front',
    allowed: ['back 80/6', 'db 80/6', 'other-back 80/6'],
    denied: ['front 80/6', 'dns 53/17', '203.0.113.1 80/6'],
  },
  {
    title: 'Namespaces: an egress rule to a label in another namespace',
    policies: cnp(
      `${FRONT}egress: [{ toEndpoints: [{ matchLabels: { role: back, "k8s:io.kubernetes.pod.namespace": other } }] }]`,
    ),
    from: 'front',
    allowed: ['other-back 80/6'],
    denied: ['back 80/6', 'db 80/6'],
  },
  {
    title: 'Namespaces: DNS of the cluster and nothing else',
    policies: ccnp(
      'endpointSelector: { matchLabels: { role: front } }\negress: [{ toEndpoints: [{ matchLabels: { "k8s:io.kubernetes.pod.namespace": kube-system, k8s-app: kube-dns } }], toPorts: [{ ports: [{ port: "53", protocol: UDP }] }] }]',
    ),
    from: 'front',
    allowed: ['dns 53/17'],
    denied: ['dns 53/6', 'back 53/17', '203.0.113.1 53/17'],
  },
  {
    title: 'Several specs in one document are a union',
    policies: `apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: { name: p }\nspecs:\n  - { endpointSelector: {}, egress: [{ toEntities: [host] }] }\n  - { endpointSelector: { matchLabels: { role: front } }, egress: [{ toCIDR: [203.0.113.0/24] }] }\n`,
    from: 'front',
    allowed: ['host 80/6', '203.0.113.1 80/6'],
    denied: ['back 80/6', '198.51.100.1 80/6'],
  },
  {
    title: 'Kubernetes NetworkPolicy: pods and ports',
    policies: knp(
      'podSelector: { matchLabels: { role: front } }\negress: [{ to: [{ podSelector: { matchLabels: { role: db } } }], ports: [{ port: 5432 }] }]',
    ),
    from: 'front',
    allowed: ['db 5432/6'],
    denied: ['db 5432/17', 'back 5432/6', '203.0.113.1 5432/6'],
  },
  {
    title: 'Kubernetes NetworkPolicy: an ipBlock with an exception, and a namespace',
    policies: knp(
      'podSelector: {}\negress: [{ to: [{ ipBlock: { cidr: 198.51.0.0/16, except: [198.51.100.0/24] } }, { namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: other } } }] }]',
    ),
    from: 'front',
    allowed: ['198.51.1.1 80/6', 'other-back 80/6'],
    denied: ['198.51.100.1 80/6', 'back 80/6'],
  },
]
