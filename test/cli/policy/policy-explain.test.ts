import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { InvalidInputError } from '../../../src/core/errors.ts'
import { namegate, objectIn, runCommand, type Ran } from '../../support/nodes/command.ts'

const policyExplainCommand = namegate('policy explain')

const root = mkdtempSync(join(tmpdir(), 'namegate-explain-'))
after(() => rmSync(root, { recursive: true, force: true }))

function mkFile(name: string, text: string): string {
  const path = join(root, name)
  writeFileSync(path, text)
  return path
}

const POLICY = mkFile(
  'web.yaml',
  `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: web, namespace: prod }
spec:
  endpointSelector: { matchLabels: { app: web } }
  egress:
    - toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.example.com" } ] } } ]
    - toFQDNs: [ { matchPattern: "*.example.com" } ]
      toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]
    - toEntities: [ cluster ]
`,
)
const MORE = mkFile(
  'more.yaml',
  `apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: no-db }
spec: { endpointSelector: {}, egressDeny: [ { toCIDR: [ 10.9.0.0/16 ] } ] }
`,
)
const ENDPOINTS = mkFile(
  'endpoints.yaml',
  'endpoints: [ { name: db, addresses: [ 10.1.0.7 ], labels: { app: db } } ]\n',
)
const RESOURCES = mkFile(
  'resources.yaml',
  'resources: [ { name: lake, addresses: [ 10.2.0.0/24 ], labels: { app: lake } } ]\n',
)
const CLOSED = mkFile('closed.yaml', 'default-egress: deny\n')
const LABELS = ['--labels', 'app=web,io.kubernetes.pod.namespace=prod']

async function explainIt(...args: readonly string[]): Promise<Ran> {
  const { code, out, err } = await runCommand(policyExplainCommand, ...args)
  return { code, out: out.replaceAll(`${root}/`, ''), err }
}

test('policyExplainCommand gives the verdict by its exit code, and the reasons as text', async () => {
  const asked = [...LABELS, '--name', 'www.example.com', '--port', '443/TCP']
  assert.deepEqual(await explainIt('--policies', POLICY, ...asked), {
    code: 0,
    out: `verdict:     allow
reason:      443/TCP is allowed by a rule
rule:        prod/web web.yaml:8 (allow)
selectors:   *.example.com
identities:  16777216
labels:      fqdn:*.example.com, reserved:world, reserved:world-ipv4
default:     deny, turned on by the policy "prod/web"
note:        no address of www.example.com is known yet: if a rule names its address or network, the verdict can differ
`,
    err: 'namegate: no --config: default-egress allow and dns.without-rules allow apply; 0 endpoints and 0 resources are known\n',
  })
  const denied = await explainIt('--policies', POLICY, ...LABELS, '--ask', 'www.example.org')
  assert.equal(denied.code, 1)
  assert.match(
    denied.out,
    /^verdict: +deny\nreason: +www\.example\.org may not be asked: no rules\.dns/,
  )
})

test('policyExplainCommand judges by every kind of question and option', async () => {
  const rows: readonly (readonly [args: string, code: number, reason: string])[] = [
    ['--ask www.example.com', 0, 'a pattern of rules.dns matches'],
    ['--ask example.com', 1, 'the pattern wants one label more'],
    ['--ask www.example.com --server 9.9.9.9:53', 0, 'a rule without peers includes every server'],
    ['--ask www.example.com --server 9.9.9.9:5353', 1, 'no rule has that port'],
    ['--name www.example.com --port 443', 0, 'TCP is the default'],
    ['--name www.example.com --port 443/udp', 1, 'the rule is for TCP'],
    ['--address 203.0.113.1 --port 443/TCP', 1, 'no name led there'],
    ['--name www.example.com --address 203.0.113.1 --port 443/TCP', 0, 'this one did'],
    ['--name www.example.com --address 10.9.1.1 --port 443/TCP', 1, 'a deny rule beats it'],
    ['--name www.example.com --address 169.254.169.254 --port 443/TCP', 1, 'guarded'],
    ['--address 10.1.0.7 --port 5432/TCP', 1, 'no file has it as an endpoint'],
    [`--address 10.1.0.7 --port 5432/TCP --endpoints ${ENDPOINTS}`, 0, 'cluster: a known endpoint'],
    [`--address 10.2.0.9 --port 5432/TCP --resources ${RESOURCES}`, 0, 'cluster: a resource'],
    ['--address 192.0.2.7 --port 22/TCP --node 192.0.2.7', 0, 'cluster: the node itself'],
  ]
  for (const [args, code, reason] of rows) {
    const found = await explainIt(
      '--policies',
      POLICY,
      MORE,
      ...LABELS,
      ...args.split(' '),
      '-o',
      'json',
    )
    assert.equal(found.code, code, `${reason}: ${found.out}${found.err}`)
    const { verdict, rules } = objectIn(found.out)
    assert.equal(verdict, code === 0 ? 'allow' : 'deny', reason)
    assert.ok(Array.isArray(rules) && (code === 1 || rules.length > 0), reason)
  }
})

test('policyExplainCommand knows endpoints by labels, ports by name, allow-lists and NetworkPolicies', async () => {
  const endpoints = mkFile(
    'dbs.yaml',
    'endpoints: [ { name: db, addresses: [ 10.1.0.7 ], labels: { "k8s:app": db }, ports: { sql: 5432/TCP } }, { name: web, addresses: [ 10.1.0.8 ], labels: { "k8s:app": web } } ]\n',
  )
  const policy = mkFile(
    'db.yaml',
    `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: db }
spec:
  podSelector: { matchLabels: { app: shop } }
  policyTypes: [ Egress ]
  egress: [ { to: [ { podSelector: { matchLabels: { app: db } } } ], ports: [ { port: sql } ] } ]
`,
  )
  const list = mkFile('names.allow', 'www.example.com:443/TCP\n')
  const rows: readonly (readonly [args: string, code: number, words: RegExp, reason: string])[] = [
    ['--address 10.1.0.7 --port 5432', 0, /default\/db db\.yaml:7/, 'the port by its name'],
    ['--address 10.1.0.7 --port 5433', 1, /its ports are/, 'another port'],
    ['--address 10.1.0.8 --port 5432', 1, /app=db.* does not select it/, 'another endpoint'],
    ['--name www.example.com --port 443', 0, /names names\.allow:1/, 'a line of the list'],
    ['--name www.example.org --port 443', 1, /does not match www\.example\.org/, 'another name'],
    ['--ask www.example.com', 0, /a rule permits it/, 'what a list opens may be asked'],
  ]
  for (const [args, code, words, reason] of rows) {
    const given = ['--policies', policy, list, '--endpoints', endpoints, '--labels', 'app=shop']
    const found = await explainIt(...given, ...args.split(' '))
    assert.equal(found.code, code, `${reason}: ${found.out}${found.err}`)
    assert.match(found.out, words, reason)
  }
})

test('policyExplainCommand goes by the defaults of the config for endpoints that no policy selects', async () => {
  const asked = [
    '--policies',
    POLICY,
    '--labels',
    'app=other',
    '--address',
    '203.0.113.1',
    '--port',
    '80',
  ]
  assert.equal((await explainIt(...asked)).code, 0)
  const closed = await explainIt(...asked, '--config', CLOSED)
  assert.equal(closed.code, 1)
  assert.match(
    closed.out,
    /default-egress is deny[\s\S]*no policy selects an endpoint with these labels/,
  )
  const named = 'app=other,namegate.io/default-egress=allow-named'
  const own = [...asked.slice(0, 3), named, ...asked.slice(4)]
  assert.equal((await explainIt(...own)).code, 1, 'the endpoint has a default of its own')
})

test('policyExplainCommand knows the endpoints and resources of the config, unless options name others', async () => {
  const config = mkFile(
    'known.yaml',
    'endpoints: { files: [endpoints.yaml, gone.yaml] }\nresources: { files: [resources.yaml] }\n',
  )
  const asked = ['--policies', POLICY, ...LABELS, '--config', config, '--port', '5432/TCP']
  const missing = `namegate: ${root}/gone.yaml does not exist and is left out\n`
  for (const [address, why] of [
    ['10.1.0.7', 'an endpoint'],
    ['10.2.0.9', 'a resource'],
  ] as const) {
    const { code, err } = await explainIt(...asked, '--address', address)
    assert.deepEqual([code, err], [0, missing], why)
  }
  const none = mkFile('none.yaml', 'endpoints: []\n')
  const named = await explainIt(...asked, '--address', '10.1.0.7', '--endpoints', none)
  assert.deepEqual([named.code, named.err], [1, ''], 'only those of the option')
})

test('policyExplainCommand refuses a wrong question with exit code 2', async () => {
  const rows: readonly (readonly [args: string, words: RegExp])[] = [
    ['--ask a.b', /needs --policies/],
    [`--policies ${POLICY} --ask a.b`, /needs --labels/],
    [
      `--policies ${POLICY} --labels a=b`,
      /needs a question, such as --ask \S+ or --name \S+ --port 443\n/,
    ],
    [`--policies ${POLICY} --labels a=b --name a.b`, /--port: found none/],
    [
      `--policies ${POLICY} --labels a=b --name a.b --port 70000`,
      /--port: found "70000", expected PORT/,
    ],
    [`--policies ${POLICY} --labels a=b --name a.b --port 1/ICMP`, /--port: found "1\/ICMP"/],
    [
      `--policies ${POLICY} --labels a=b --name a..b --port 1`,
      /--name: found "a\.\.b": empty label/,
    ],
    [`--policies ${POLICY} --labels a=b --address 1.2.3 --port 1`, /--address: found "1\.2\.3"/],
    [
      `--policies ${POLICY} --labels a=b --ask a.b --port 53`,
      /--port: is for a connection: write --name in place of --ask/,
    ],
    [
      `--policies ${POLICY} --labels a=b --ask a.b --server 9.9.9.9`,
      /--server: found "9\.9\.9\.9", expected/,
    ],
    [
      `--policies ${POLICY} --labels a=b --server 9.9.9.9:53 --name a.b --port 1`,
      /--server: is for a question for a name: write --ask in place of --name and --address/,
    ],
    [`--policies ${POLICY} --labels =b --ask a.b`, /--labels: found "=b", expected a label key/],
    [
      `--policies ${POLICY} --labels a=b --ask a.b --node here`,
      /--node: found "here", expected an address/,
    ],
  ]
  for (const [args, words] of rows) {
    const { code, out, err } = await explainIt(...args.split(' '))
    assert.deepEqual([code, out], [2, ''], args)
    assert.match(err, words)
  }
  const broken = mkFile('broken.yaml', 'kind: [\n')
  await assert.rejects(
    explainIt('--policies', broken, ...LABELS, '--ask', 'a.b'),
    InvalidInputError,
  )
})

test('policyExplainCommand takes resources as the daemon lists them, and says what it goes by', async () => {
  const row = { name: 'lake', addresses: ['10.2.0.0/24'], labels: ['external:app=a=b'] }
  const listed = mkFile('listed.json', JSON.stringify([{ ...row, origin: 'api', expires: null }]))
  const asked = ['--policies', POLICY, ...LABELS, '--address', '10.2.0.1', '--port', '5432/TCP']
  const without = await explainIt(...asked, '--config', CLOSED)
  assert.deepEqual([without.code, without.err], [1, ''])
  const ran = await explainIt(...asked, '--resources', listed)
  assert.equal(ran.code, 0)
  assert.match(ran.out, /external:app=a=b/)
  assert.match(ran.err, /default-egress allow .* 0 endpoints and 1 resources are known/)
  for (const text of ['[1]', '[', '{"a": [']) {
    const bad = explainIt(...asked, '--resources', mkFile('bad.json', text))
    await assert.rejects(bad, InvalidInputError, text)
  }
})

test('policyExplainCommand says which word it cannot place, and how it is used', async () => {
  const args = ['--policies', POLICY, ...LABELS, '--ask', 'www.example.com']
  const { code, out, err } = await runCommand(policyExplainCommand, ...args, 'other.example.com')
  assert.deepEqual([code, out], [2, ''])
  assert.match(
    err,
    /^namegate: found the word "other\.example\.com", expected a policy file or folder, or a question such as --ask NAME\nUsage: namegate policy explain /,
  )
  assert.equal((await runCommand(policyExplainCommand, ...args, MORE)).code, 0, 'a file')
})
