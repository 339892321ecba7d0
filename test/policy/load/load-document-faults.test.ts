import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../../src/core/errors.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'

const API = 'apiVersion: cilium.io/v2\n'
const KIND = 'kind: CiliumNetworkPolicy\n'
const META = 'metadata: { name: p }\n'
const SPEC = 'spec: { endpointSelector: {}, egress: [{}] }\n'

const ROWS: readonly (readonly [why: string, text: string, faults: readonly string[]])[] = [
  [
    'a text',
    'hello\n',
    ['1:1: found "hello", expected a policy: a mapping with apiVersion, kind, metadata and spec'],
  ],
  ['no apiVersion', KIND + META + SPEC, ['1:1: found no apiVersion, expected cilium.io/v2']],
  [
    'another apiVersion',
    `apiVersion: v1\n${KIND}`,
    ['1:13: apiVersion: found "v1", expected cilium.io/v2'],
  ],
  [
    'no kind',
    API + META,
    [
      '1:1: found no kind, expected CiliumNetworkPolicy, CiliumClusterwideNetworkPolicy, NetworkPolicy or ClusterNetworkPolicy',
    ],
  ],
  [
    'another kind',
    `${API}kind: Pod\n`,
    [
      '2:7: kind: found "Pod", expected CiliumNetworkPolicy, CiliumClusterwideNetworkPolicy, NetworkPolicy or ClusterNetworkPolicy',
    ],
  ],
  [
    'a NetworkPolicy of another apiVersion',
    'apiVersion: cilium.io/v2\nkind: NetworkPolicy\n',
    ['1:13: apiVersion: found "cilium.io/v2", expected networking.k8s.io/v1'],
  ],
  [
    'a List',
    'apiVersion: v1\nkind: List\n',
    ['2:7: kind: is not supported: write its items as documents of their own'],
  ],
  [
    'no spec in specs',
    `${API + KIND + META}specs: []\n`,
    ['4:8: specs: found an empty list, expected one spec at least'],
  ],
  ['no metadata', API + KIND + SPEC, ['1:1: found no metadata, expected metadata.name']],
  [
    'no name',
    `${API + KIND}metadata: { namespace: x }\n${SPEC}`,
    ['3:11: metadata: found no name, expected one'],
  ],
  [
    'a name that Kubernetes refuses',
    `${API + KIND}metadata: { name: A_b }\n${SPEC}`,
    ['3:19: metadata.name: found "A_b", expected a name of letters a-z, digits, - and .'],
  ],
  [
    'a namespace with a dot',
    `${API + KIND}metadata: { name: a, namespace: a.b }\n${SPEC}`,
    ['3:33: metadata.namespace: found "a.b", expected a namespace of letters a-z, digits and -'],
  ],
  [
    'an unknown field in metadata',
    `${API + KIND}metadata: { name: a, namspace: b }\n${SPEC}`,
    ['3:22: unknown field metadata.namspace; did you mean "namespace"?'],
  ],
  [
    'a clusterwide policy with namespace',
    `${API}kind: CiliumClusterwideNetworkPolicy\nmetadata: { name: a, namespace: b }\n${SPEC}`,
    ['3:22: metadata.namespace: found a namespace, expected none: the policy is clusterwide'],
  ],
  [
    'values of annotations',
    `${API + KIND}metadata:\n  name: a\n  annotations:\n    namegate.io/min-ttl: 5 s\n    namegate.io/cname-match: all\n    namegate.io/svcb: drop\n${SPEC}`,
    [
      '6:26: metadata.annotations["namegate.io/min-ttl"]: found "5 s", expected a duration: a whole number and ms, s, m, h or d, such as 30s',
      '7:30: metadata.annotations["namegate.io/cname-match"]: found "all", expected question or chain',
      '8:23: metadata.annotations["namegate.io/svcb"]: found "drop", expected learn, strip or pass',
    ],
  ],
  [
    'annotations of ours',
    `${API + KIND}metadata:\n  name: a\n  annotations:\n    namegate.io/audit: true\n    namegate.io/allow-guarded: x\n    namegate.io/adit: x\n${SPEC}`,
    [
      '6:24: metadata.annotations["namegate.io/audit"]: found true, expected "true" or "false", in quotes',
      '7:32: metadata.annotations["namegate.io/allow-guarded"]: found "x", expected "true" or "false", in quotes',
      '8:5: metadata.annotations["namegate.io/adit"]: unknown annotation; did you mean "namegate.io/audit"?',
    ],
  ],
  [
    'an unknown field',
    `${API + KIND + META + SPEC}spek: {}\n`,
    ['5:1: unknown field spek; did you mean "spec"?'],
  ],
  ['no spec', API + KIND + META, ['1:1: found no spec, expected spec or specs']],
  [
    'a spec that is no mapping',
    `${API + KIND + META}spec: []\n`,
    ['4:7: spec: found an empty list, expected a mapping'],
  ],
  [
    'specs that is no list',
    `${API + KIND + META}specs: {}\n`,
    ['4:8: specs: found a mapping, expected a list'],
  ],
  [
    'no endpointSelector',
    `${API + KIND + META}spec: { egress: [{}] }\n`,
    ['4:7: spec: found no endpointSelector, expected one; `{}` selects every endpoint'],
  ],
  [
    'nodeSelector',
    `${API + KIND + META}spec: { nodeSelector: {}, egress: [{}] }\n`,
    ['4:9: spec.nodeSelector: is not supported: policies select endpoints'],
  ],
  [
    'ingress',
    `${API + KIND + META}spec: { endpointSelector: {}, ingress: [{}] }\n`,
    ['4:31: spec.ingress: is not supported: namegate decides egress only'],
  ],
  [
    'ingressDeny',
    `${API + KIND + META}spec: { endpointSelector: {}, egress: [{}], ingressDeny: [{}] }\n`,
    ['4:45: spec.ingressDeny: is not supported: namegate decides egress only'],
  ],
  [
    'no rule at all',
    `${API + KIND + META}spec: { endpointSelector: {} }\n`,
    [
      '4:7: spec: found no rule in egress or egressDeny, expected one; `egress: [{}]` denies everything',
    ],
  ],
  [
    'an empty egress, as Cilium does',
    `${API + KIND + META}spec: { endpointSelector: {}, egress: [] }\n`,
    [
      '4:7: spec: found no rule in egress or egressDeny, expected one; `egress: [{}]` denies everything',
    ],
  ],
  [
    'enableDefaultDeny that is no mapping',
    `${API + KIND + META}spec: { endpointSelector: {}, egress: [{}], enableDefaultDeny: true }\n`,
    ['4:64: spec.enableDefaultDeny: found true, expected a mapping'],
  ],
  [
    'enableDefaultDeny for ingress',
    `${API + KIND + META}spec: { endpointSelector: {}, egress: [{}], enableDefaultDeny: { ingress: true } }\n`,
    ['4:66: spec.enableDefaultDeny.ingress: is not supported: namegate decides egress only'],
  ],
  [
    'matchExpressions',
    `${API + KIND + META}spec: { endpointSelector: { matchExpressions: [{}] }, egress: [{}] }\n`,
    [
      '4:48: spec.endpointSelector.matchExpressions[0]: found no key, expected a label key',
      '4:48: spec.endpointSelector.matchExpressions[0]: found no operator, expected In, NotIn, Exists or DoesNotExist',
    ],
  ],
  [
    'a label value that is no text',
    `${API + KIND + META}spec: { endpointSelector: { matchLabels: { a: true } }, egress: [{}] }\n`,
    ['4:47: spec.endpointSelector.matchLabels.a: found true, expected a text (write it in quotes)'],
  ],
  [
    'a label key that is none',
    `${API + KIND + META}spec: { endpointSelector: { matchLabels: { "a b": c } }, egress: [{}] }\n`,
    [
      '4:44: spec.endpointSelector.matchLabels["a b"]: found "a b", expected a label key without blanks and =',
    ],
  ],
  [
    'a description that is no text',
    `${API + KIND + META}spec: { description: [], endpointSelector: {}, egress: [{}] }\n`,
    ['4:22: spec.description: found an empty list, expected a text'],
  ],
  [
    'a rule that is no mapping',
    `${API + KIND + META}spec: { endpointSelector: {}, egress: [null] }\n`,
    ['4:40: spec.egress[0]: found nothing, expected a mapping'],
  ],
  [
    'the same policy twice',
    `${API + KIND + META + SPEC}---\n${API + KIND + META + SPEC}`,
    ['8:19: metadata.name: found the CiliumNetworkPolicy default/p again, first at f:3'],
  ],
  [
    'a key twice',
    `${API + KIND + META}spec: { egress: [{}], egress: [{}] }\n`,
    ['4:23: found the key "egress" twice, first on line 4'],
  ],
  [
    'text that is no YAML',
    `${API}kind: [\n`,
    [
      '3:1: found no ] at the end of a list that begins with [, or a line of it without indentation',
    ],
  ],
]

for (const [why, text, expected] of ROWS) {
  test(`loadPolicies refuses ${why}`, () => {
    const { policies, faults } = loadPolicies(text, 'f')
    assert.deepEqual(
      faults.map((fault) => formatFault(fault).replace(/^f:/, '')),
      expected,
    )
    assert.deepEqual(policies, [])
  })
}
