import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import type { Policy } from '../../../src/policy/rule.ts'
import {
  policyKey,
  parsePolicyFile,
  repeatedPolicies,
} from '../../../src/sources/files/policy-files.ts'
import { SourceFiles } from '../../../src/sources/files/source-files.ts'
import { FakeClock } from '../../support/fake-clock.ts'

let folder = ''
let clock = new FakeClock()
let files = newFiles()

function newFiles(): SourceFiles<Policy> {
  return new SourceFiles({
    paths: [{ path: folder, position: { file: 'config', line: 1, column: 1 } }],
    clock,
    parse: (text, file) => parsePolicyFile(text, file),
    together: repeatedPolicies,
    keyOf: policyKey,
  })
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'namegate-files-'))
  clock = new FakeClock()
  files = newFiles()
  for (const name of ['a', 'b', 'c']) write(name, name, 'one.test')
  assert.deepEqual(files.loadAll(), [])
  files.accept()
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A file with one policy. */
function write(file: string, policy: string, name: string): void {
  writeFileSync(
    join(folder, `${file}.yaml`),
    `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${policy} }
spec:
  endpointSelector: {}
  egress: [ { toFQDNs: [ { matchName: ${name} } ] } ]
`,
  )
}

/** Looks until a change settles. Returns true if it gives another configuration. */
function settle(): boolean {
  files.poll()
  clock.advance(1100)
  files.poll()
  return files.accept()
}

/** `policy name` of every policy in force. */
function inForce(): readonly string[] {
  return files.items.map(({ name, rules: [rule] }) => {
    const [peer] = rule?.peers.kind === 'selectors' ? rule.peers.selectors : []
    return `${name} ${peer?.kind === 'fqdn' ? peer.pattern.text : ''}`
  })
}

test('SourceFiles replaces a changed file, and keeps the objects of others', () => {
  const before = files.items
  write('b', 'b', 'other.test')
  assert.equal(settle(), true)
  assert.deepEqual(inForce(), ['a one.test', 'b other.test', 'c one.test'])
  assert.equal(files.items[0], before[0])
  assert.equal(files.items, files.proposed)
  assert.deepEqual(files.faults, [])
  assert.equal(settle(), false)
  assert.equal(files.items, files.proposed)
})

test('SourceFiles holds a file with the policy of another one, until that one is removed', () => {
  write('b', 'a', 'other.test')
  assert.equal(settle(), false)
  assert.deepEqual(inForce(), ['a one.test', 'b one.test', 'c one.test'])
  assert.equal(files.faults.length, 1)
  assert.equal(files.hasHeld, true)
  rmSync(join(folder, 'a.yaml'))
  assert.equal(settle(), true)
  assert.deepEqual(inForce().toSorted(), ['a other.test', 'c one.test'])
  assert.deepEqual(files.faults, [])
})

test('SourceFiles holds one of two new files that come together with the same policy', () => {
  write('d', 'new', 'one.test')
  write('e', 'new', 'other.test')
  write('f', 'own', 'one.test')
  assert.equal(settle(), true)
  const three = ['a one.test', 'b one.test', 'c one.test']
  assert.deepEqual(inForce(), [...three, 'new one.test', 'own one.test'])
  assert.match(files.faults.map(({ message }) => message).join('\n'), /new again/)
  rmSync(join(folder, 'e.yaml'))
  assert.equal(settle(), false)
  assert.deepEqual(files.faults, [])
})

test('SourceFiles holds a restored file if another file has its policy by then', () => {
  write('b', 'd', 'other.test')
  assert.equal(settle(), true)
  write('c', 'b', 'other.test')
  assert.equal(settle(), true)
  write('b', 'b', 'other.test')
  assert.equal(settle(), false)
  assert.deepEqual(inForce(), ['a one.test', 'd other.test', 'b other.test'])
  assert.equal(files.faults.length, 1)
})

test('SourceFiles keeps the last good version of a broken file, reports the fault, and stops when it is repaired', () => {
  writeFileSync(join(folder, 'b.yaml'), 'kind: [')
  assert.equal(settle(), false)
  assert.deepEqual(inForce(), ['a one.test', 'b one.test', 'c one.test'])
  assert.notDeepEqual(files.faults, [])
  write('b', 'b', 'mended.test')
  assert.equal(settle(), true)
  assert.deepEqual(inForce(), ['a one.test', 'b mended.test', 'c one.test'])
  assert.deepEqual(files.faults, [])
})

test('SourceFiles reports a new link without a target as a fault of its path, until it has one', () => {
  for (const [target, reason] of [
    ['new.yaml', /cannot read: ELOOP/],
    ['nowhere', /cannot read: ENOENT/],
  ] as const) {
    const path = join(folder, 'new.yaml')
    symlinkSync(target, path)
    settle()
    assert.deepEqual(
      files.faults.map(({ position, message }) => [position.file, reason.test(message)]),
      [[path, true]],
    )
    assert.equal(files.isReachable, true, 'the other files are read')
    assert.deepEqual(
      newFiles()
        .loadAll()
        .map(({ position }) => position.file),
      [path],
      'at the start',
    )
    rmSync(path)
    settle()
    assert.deepEqual(files.faults, [])
  }
  symlinkSync('nowhere', join(folder, 'new.yaml'))
  settle()
  write('target', 'new', 'one.test')
  renameSync(join(folder, 'target.yaml'), join(folder, 'nowhere'))
  assert.equal(settle(), true)
  assert.deepEqual(files.faults, [])
  assert.equal(inForce().at(-1), 'new one.test')
})

test('SourceFiles keeps the files of a linked folder in force while the link has no target', () => {
  mkdirSync(join(folder, 'v1'))
  symlinkSync('v1', join(folder, 'linked.yaml'))
  write('linked.yaml/d', 'd', 'one.test')
  rmSync(join(folder, 'c.yaml'))
  settle()
  files = newFiles()
  files.loadAll()
  files.accept()
  rmSync(join(folder, 'v1'), { recursive: true })
  settle()
  assert.ok(inForce().includes('d one.test'), inForce().join())
})

test('SourceFiles undoes a proposal, and proposes what is in force again', () => {
  const [policy] = files.items
  assert.ok(policy)
  const given = { ...policy, name: 'given' }
  const giving = files.propose(new Map([['given', { digest: '1', items: [given] }]]))
  assert.deepEqual(giving.faults, [])
  assert.equal(files.proposed.length, 4)
  giving.undo()
  assert.equal(files.proposed.length, 3)
  assert.equal(files.accept(), false)
})

test('SourceFiles.scan reads very many files in slices, and poll uses the results of all', () => {
  for (let i = 0; i < 200; i++) write(`many-${i}`, `many-${i}`, 'one.test')
  assert.equal(files.scan(clock.now()), false, 'the time is over at once')
  assert.equal(files.scan(clock.now()), false)
  assert.equal(files.scan(clock.now() + 1), true)
  assert.equal(files.scan(clock.now()), true, 'all files were read')
  files.poll()
  clock.advance(1100)
  files.poll()
  assert.equal(files.proposed.length, 203)
})
