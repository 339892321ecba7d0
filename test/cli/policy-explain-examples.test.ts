// The examples of Cilium's documentation through `policy explain`: the verdict of each text, from files alone, with a reason.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { namegate, runCommand } from '../support/nodes/command.ts'
import { EXAMPLES } from '../semantics/cilium-examples.ts'
import type { Example } from '../semantics/example.ts'

const policyExplainCommand = namegate('policy explain')

const root = mkdtempSync(join(tmpdir(), 'namegate-examples-'))
after(() => rmSync(root, { recursive: true, force: true }))

function mkFile(name: string, text: string): string {
  const path = join(root, name)
  writeFileSync(path, text)
  return path
}

const NAMESPACE = 'k8s:io.kubernetes.pod.namespace'
/** The world of support/example-node.ts as files. */
const ENDPOINTS = mkFile(
  'endpoints.yaml',
  `endpoints:
  - { name: front, addresses: [ 10.200.0.1, "fd00:200::1" ], labels: { "k8s:role": front } }
  - { name: db, addresses: [ 10.200.0.3 ], labels: { "k8s:role": db }, ports: { pg: 5432/TCP } }
  - { name: back, addresses: [ 10.200.0.2 ], labels: { "k8s:role": back } }
  - { name: other-back, addresses: [ 10.200.1.2 ], labels: { "k8s:role": back, "${NAMESPACE}": other } }
  - { name: dns, addresses: [ 10.200.2.2 ], labels: { "k8s:k8s-app": kube-dns, "${NAMESPACE}": kube-system } }
`,
)
const RESOURCES = mkFile(
  'resources.yaml',
  'resources: [ { name: lake, addresses: [ 10.9.0.0/24 ], labels: { app: lake } } ]\n',
)
const WORLD = [
  '--endpoints',
  ENDPOINTS,
  '--resources',
  RESOURCES,
  '--node',
  '192.0.2.9',
  '--node',
  '2001:db8::9',
]
const LABELS: Readonly<Record<string, string>> = {
  front: 'k8s:role=front',
  db: 'k8s:role=db',
  back: 'k8s:role=back',
  'other-back': `k8s:role=back,${NAMESPACE}=other`,
  dns: `k8s:k8s-app=kube-dns,${NAMESPACE}=kube-system`,
}
const PEERS: Readonly<Record<string, string>> = {
  host: '192.0.2.9',
  lake: '10.9.0.77',
  front: '10.200.0.1',
  db: '10.200.0.3',
  back: '10.200.0.2',
  'other-back': '10.200.1.2',
  dns: '10.200.2.2',
}
const PROTOCOLS: Readonly<Record<string, string>> = { 6: 'TCP', 17: 'UDP', 132: 'SCTP' }

/** Verdicts on `PEER PORT/PROTOCOL`, one for each name that led to the peer, or for the bare address. */
async function connecting(
  example: Example,
  common: readonly string[],
  to: string,
): Promise<readonly number[]> {
  const [peer = '', ports = ''] = to.split(' ')
  const [port = '', protocol = ''] = ports.split('/')
  const address = PEERS[peer] ?? peer
  const names = Object.entries(example.learned ?? {}).flatMap(([name, addresses]) =>
    addresses.includes(address) ? [['--name', name]] : [],
  )
  const codes: number[] = []
  for (const by of names.length === 0 ? [[]] : names) {
    const asked = [
      '--address',
      address,
      '--port',
      `${port}/${PROTOCOLS[protocol] ?? protocol}`,
      ...by,
    ]
    codes.push(await explainIt([...common, ...asked]))
  }
  return codes
}

async function explainIt(args: readonly string[]): Promise<number> {
  const { code, out, err } = await runCommand(policyExplainCommand, ...args)
  assert.match(out, code === 0 ? /^verdict: +allow\nreason: / : /^verdict: +deny\nreason: /, err)
  return code
}

/** Rows that explain cannot express: protocols without ports. */
function hasPort(to: string): boolean {
  return /\/(6|17|132)$/.test(to)
}

for (const [i, example] of EXAMPLES.entries()) {
  test(`policyExplainCommand: ${example.title}`, async () => {
    const policies = mkFile(`policy-${i}.yaml`, example.policies)
    const labels = LABELS[example.from] ?? ''
    const common = ['--policies', policies, '--labels', labels, ...WORLD]
    for (const to of example.allowed.filter(hasPort)) {
      assert.ok((await connecting(example, common, to)).includes(0), `${to} is allowed`)
    }
    for (const to of example.denied.filter(hasPort)) {
      assert.ok(!(await connecting(example, common, to)).includes(0), `${to} is denied`)
    }
    for (const name of example.mayAsk ?? []) {
      assert.equal(await explainIt([...common, '--ask', name]), 0, `${name} may be asked`)
    }
    for (const name of example.mayNotAsk ?? []) {
      assert.equal(await explainIt([...common, '--ask', name]), 1, `${name} may not be asked`)
    }
  })
}
