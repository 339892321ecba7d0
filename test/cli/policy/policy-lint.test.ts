import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { InvalidInputError } from '../../../src/core/errors.ts'
import { LINT_CODES } from '../../../src/lint/finding.ts'
import { namegate, runCommand } from '../../support/nodes/command.ts'

const policyLintCommand = namegate('policy lint')

const EXAMPLE = 'docs/examples/doubtful.yaml'
const DOCS = readFileSync('docs/policy-lint.md', 'utf8')
const root = mkdtempSync(join(tmpdir(), 'namegate-policy-lint-'))
after(() => rmSync(root, { recursive: true, force: true }))

function mkFile(name: string, text: string): string {
  const path = join(root, name)
  writeFileSync(path, text)
  return path
}

test('policyLintCommand works as docs/policy-lint.md shows, and the page has every code', async () => {
  const { code, out } = await runCommand(policyLintCommand, EXAMPLE)
  assert.equal(code, 1)
  assert.ok(DOCS.includes(out), out)
  for (const each of LINT_CODES) assert.ok(DOCS.includes(`| \`${each}\` |`), each)
})

test('policyLintCommand prints the same with -o json as in words', async () => {
  const { code, out } = await runCommand(policyLintCommand, EXAMPLE, '-o', 'json')
  assert.equal(code, 1)
  const rows: unknown = JSON.parse(out)
  assert.ok(Array.isArray(rows))
  assert.deepEqual(rows[2], {
    file: EXAMPLE,
    line: 9,
    column: 7,
    code: 'shadowed-by-deny',
    message: `everything that this rule allows is denied at ${EXAMPLE}:11, because deny beats allow`,
    remedy: 'remove the rule, or make the deny rule narrower',
  })
})

test('policyLintCommand prints faults of files as JSON with -o json, with exit code 2', async () => {
  const faulty = mkFile('faulty.allow', 'a..b\n')
  const { code, out, err } = await runCommand(policyLintCommand, faulty, '-o', 'json')
  const message = 'found an empty label in "a..b", expected text between two dots'
  assert.deepEqual(JSON.parse(out), [{ file: faulty, line: 1, column: 3, message }])
  assert.deepEqual([code, err], [2, ''])
})

test('policyLintCommand finds nothing in the policies of the package, and reports what it could not know', async () => {
  const bare = await runCommand(policyLintCommand, 'config/policies')
  assert.deepEqual([bare.code, bare.out], [0, ''])
  assert.match(bare.err, /selects-nothing \(no --endpoints\)\n.*cname-target \(no --chains\)\n/)
  const chains = mkFile('chains.yaml', 'www.example.com.: [ Edge.example.net ]\n')
  const given = ['--endpoints', 'config/endpoints.yaml', '--chains', chains]
  const known = await runCommand(policyLintCommand, 'config/policies', ...given)
  assert.deepEqual(known, { code: 0, out: '', err: '' })
})

test('policyLintCommand uses the given endpoints and chains', async () => {
  const policy = mkFile(
    'p.yaml',
    'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\nspec:\n  endpointSelector: { matchLabels: { app: nobody } }\n  egress: [ { toFQDNs: [ { matchName: www.a.io }, { matchName: edge.b.net } ] } ]\n',
  )
  const chains = mkFile('aliases.yaml', 'www.a.io: [ edge.b.net ]\n')
  const given = ['--endpoints', 'config/endpoints.yaml', '--chains', chains]
  const { code, out } = await runCommand(policyLintCommand, policy, ...given)
  assert.equal(code, 1)
  assert.match(
    out,
    /p\.yaml:5:3: selects-nothing: the policy selects none of the given endpoints; it selects only in namespace default/,
  )
  assert.match(out, /p\.yaml:6:64: cname-target: edge\.b\.net is the CNAME target of www\.a\.io/)
})

test('policyLintCommand looks for the peers of deny rules among endpoints, with their cluster, and resources', async () => {
  const peer = (label: string): string => `{ matchLabels: { ${label} } }`
  const peers = ['io.cilium.k8s.policy.cluster: default', 'app: db', 'app: dp'].map(peer)
  const policy = mkFile(
    'deny.yaml',
    `apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: { name: p }\nspec:\n  endpointSelector: {}\n  egressDeny: [ { toEndpoints: [ ${peers.join(', ')} ] } ]\n`,
  )
  const resources = mkFile(
    'resources.yaml',
    'resources: [ { name: db, addresses: [ 192.0.2.1 ], labels: { app: db } } ]\n',
  )
  const given = ['--endpoints', 'config/endpoints.yaml', '--resources', resources]
  const { code, out } = await runCommand(policyLintCommand, policy, ...given)
  assert.deepEqual([code, out.split('\n').length], [1, 2], out)
  assert.match(
    out,
    /deny\.yaml:6:17: selects-nothing: a peer of a deny rule selects none of .*: app=dp;/,
  )
})

test('policyLintCommand refuses wrong use and files with faults', async () => {
  assert.equal((await runCommand(policyLintCommand)).code, 2)
  const broken = mkFile('broken.yaml', 'kind: [\n')
  await assert.rejects(runCommand(policyLintCommand, broken), InvalidInputError)
  const chains = mkFile('bad.yaml', 'a.b: c.d\n')
  const args = [EXAMPLE, '--chains', chains]
  await assert.rejects(runCommand(policyLintCommand, ...args), InvalidInputError)
})
