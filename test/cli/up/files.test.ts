// The files that `namegate up` and `namegate init` write: the daemon reads them without a fault, and they mean the decisions of the plan.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { parseAddress } from '../../../src/core/ip.ts'
import { defaultConfig, loadConfig } from '../../../src/config/load.ts'
import { readEndpointFiles } from '../../../src/sources/files/endpoint-files.ts'
import { loadAllowList } from '../../../src/policy/load/allow-list.ts'
import {
  ALLOW_FILE,
  CONFIG_FILE,
  ENDPOINTS_FILE,
  filesOf,
  text,
  type UpTexts,
} from '../../../src/cli/up/files.ts'
import { policyWarnings } from '../../../src/cli/up/policy-warnings.ts'
import { initFiles } from '../../../src/cli/up/init-files.ts'
import type { UpPlan } from '../../../src/cli/up/plan.ts'
import { mkFolder } from '../../support/nodes/daemon-files.ts'

const folder = mkFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

const server = parseAddress('2620:fe::fe')
assert.ok(server !== undefined)
const PLAN: UpPlan = {
  name: 'box',
  namespace: undefined,
  mode: { value: 'tproxy', why: 'a reason with "quotes": and a # mark' },
  datapath: { value: 'ebpf', why: 'it can' },
  endpoints: {
    value: [
      {
        name: 'box',
        addresses: ['10.98.0.2', 'fd00::2'],
        interface: { name: 'box0', hook: 'ingress' },
      },
    ],
    why: 'found',
  },
  servers: { value: [{ ...server, port: 53 }], why: 'named' },
  warnings: [],
}
const TEXTS: UpTexts = {
  plan: PLAN,
  command: 'namegate up --netns box --allow example.com',
  program: '/opt/namegate/bin/namegate',
  config: '/srv/my box/namegate.yaml',
  port: 10_054,
  socket: '/run/namegate/up-box/admin.sock',
  pinPath: '/sys/fs/bpf/namegate-up-box',
  policies: ['/srv/a b.allow'],
  allows: ['example.com', '*.example.org:443/tcp', '[2001:db8::/32]:80'],
  audit: false,
}

function write(name: string, files: ReadonlyMap<string, string>): string {
  for (const [file, content] of files) {
    const path = join(folder, name, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  }
  return join(folder, name, CONFIG_FILE)
}

test('filesOf writes a configuration that has every decision', () => {
  const config = loadConfig(write('plain', filesOf(TEXTS)))
  assert.equal(config.listeners[0]?.mode, 'tproxy')
  assert.equal(config.listeners[0].port, 10_054)
  assert.ok(config.intercept.onStart)
  assert.equal(config.datapath.kind, 'ebpf')
  assert.equal(config.datapath.pinPath, TEXTS.pinPath)
  assert.equal(config.admin.socket, TEXTS.socket)
  assert.equal(config.defaultEgress, 'deny')
  assert.equal(config.dns.withoutRules, 'deny')
  assert.equal(config.unknownClients.onTimeout, 'refuse')
  assert.equal(config.audit.node, false)
  assert.deepEqual(
    config.policies.paths.map(({ path }) => path),
    [join(folder, 'plain/policies'), '/srv/a b.allow'],
  )
  const [endpoint] = readEndpointFiles(config.endpoints.files)
  assert.equal(endpoint?.name, 'box')
  assert.equal(endpoint.addresses.length, 2)
  assert.deepEqual(endpoint.hook, { kind: 'interface', name: 'box0', side: 'ingress' })
  assert.deepEqual(endpoint.labels, ['external:app=box'])
})

test('filesOf writes --allow as an allow-list, and none without --allow', () => {
  const list = filesOf(TEXTS).get(ALLOW_FILE) ?? ''
  const { policies, faults } = loadAllowList(list, 'up.allow', { matchLabels: new Map() })
  assert.deepEqual([policies.length, faults], [1, []])
  assert.ok(!filesOf({ ...TEXTS, allows: [] }).has(ALLOW_FILE))
})

test('filesOf writes audit and a cgroup, whose queries alone are redirected', () => {
  const plan: UpPlan = {
    ...PLAN,
    mode: { value: 'redirect', why: 'so' },
    endpoints: { value: [{ name: 'build', addresses: [], cgroup: 'a.slice/b' }], why: 'given' },
  }
  const config = loadConfig(write('cgroup', filesOf({ ...TEXTS, plan, audit: true, policies: [] })))
  assert.deepEqual(
    config.listeners.map(({ processes }) => processes),
    ['cgroups'],
  )
  assert.ok(config.audit.node)
  const [endpoint] = readEndpointFiles(config.endpoints.files)
  assert.deepEqual(endpoint?.hook, { kind: 'cgroup', path: 'a.slice/b' })
})

test('initFiles writes a configuration that a daemon can start with, without and with workloads', () => {
  const resolvers = { file: '/etc/resolv.conf', servers: [] }
  for (const [name, found] of [
    ['empty', []],
    ['found', PLAN.endpoints.value],
  ] as const) {
    const files = initFiles({ datapath: { value: 'nftables', why: 'so' }, resolvers, found })
    const config = loadConfig(write(`init-${name}`, files))
    assert.equal(config.datapath.kind, 'nftables')
    assert.deepEqual(readEndpointFiles(config.endpoints.files), [], 'nothing is enforced yet')
  }
})

test('initFiles comments the workloads that it found so that removing the # is enough', () => {
  const resolvers = { file: '/etc/resolv.conf', servers: [] }
  const datapath = { value: 'ebpf', why: 'so' } as const
  const files = new Map(initFiles({ datapath, resolvers, found: PLAN.endpoints.value }))
  const commented = files.get('endpoints.yaml') ?? ''
  const used = commented.replace(/#(?= \{)/g, '')
  files.set('endpoints.yaml', used)
  const [endpoint] = readEndpointFiles(loadConfig(write('used', files)).endpoints.files)
  assert.equal(endpoint?.name, 'box')
  assert.deepEqual(endpoint.hook, { kind: 'interface', name: 'box0', side: 'ingress' })
})

test('text quotes what YAML would read in another way', () => {
  const rows = [
    ['box0', 'box0'],
    ['on', '"on"'],
    ['12', '"12"'],
    ['a: b', '"a: b"'],
    ['fd00::2', '"fd00::2"'],
    ['', '""'],
  ]
  for (const [given = '', wanted] of rows) assert.equal(text(given), wanted)
})

const NAMED = 'egress: [{ toFQDNs: [{ matchName: a.example }] }]'
const ASKED = `egress:
    - toFQDNs: [{ matchName: a.example }]
    - toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchName: a.example }] } }]`
const DOUBTS: readonly (readonly [
  app: string,
  spec: string,
  allows: string,
  found: RegExp,
  why: string,
])[] = [
  ['box', ASKED, '', /^$/, 'the policy selects the workload and lets the name be asked'],
  [
    'bax',
    ASKED,
    '',
    /^\S*policy\.yaml:\d+:\d+: selects-nothing: [^]*\nthe workload has the label app=box$/,
    'the policy selects nothing',
  ],
  ['box', NAMED, '', /: never-asked: no rules\.dns lets the endpoints ask a\.example: /, 'unasked'],
  ['box', NAMED, 'a.example', /^$/, 'a line of --allow lets the name be asked'],
  [
    'box',
    ASKED.replaceAll('a.example', '10.0.0.256'),
    '',
    /: never-matches: 10\.0\.0\.256 looks like an address, and is none/,
    'an address with a slip',
  ],
]
for (const [app, spec, allows, found, why] of DOUBTS) {
  test(`policyWarnings says what policy lint says: ${why}`, () => {
    const policy = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: web }
spec:
  endpointSelector: { matchLabels: { app: ${app} } }
  ${spec}
`
    const made = filesOf({ ...TEXTS, allows: allows === '' ? [] : [allows] })
    const at = dirname(write('doubts', new Map([...made, ['policy.yaml', policy]])))
    const paths = ['policy.yaml', ...(allows === '' ? [] : [ALLOW_FILE])].map((file) =>
      join(at, file),
    )
    const lines = policyWarnings(paths, join(at, ENDPOINTS_FILE), defaultConfig())
    assert.match(lines.join('\n'), found)
  })
}
