import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPrefix } from '../../src/core/ip.ts'
import { loadPolicyObjects } from '../../src/policy/load/load.ts'
import { parseAllow, type Allow } from '../../src/policy/allow-line.ts'
import { allowPolicy, recordingPolicy } from '../../src/sandbox/allow.ts'

function mkAllow(text: string): Allow {
  const result = parseAllow(text)
  assert.ok(result.kind === 'ok', text)
  return result.allow
}

function targetOf({ target }: Allow): string {
  return target.kind === 'name' ? target.pattern.text : formatPrefix(target.prefix)
}

test('parseAllow reads a name, an address or a prefix with port and protocol', () => {
  const rows: readonly (readonly [
    text: string,
    pattern: string,
    port: number,
    protocols: string,
  ])[] = [
    ['github.com', 'github.com', 0, 'TCP,UDP'],
    ['GitHub.com.', 'github.com', 0, 'TCP,UDP'],
    ['*.packages.example:443', '*.packages.example', 443, 'TCP,UDP'],
    ['**.example.com:1/udp', '**.example.com', 1, 'UDP'],
    ['example.com:65535/TCP', 'example.com', 65_535, 'TCP'],
    ['*', '*', 0, 'TCP,UDP'],
    ['10.1.2.3', '10.1.2.3/32', 0, 'TCP,UDP'],
    ['10.0.0.0/8:443/tcp', '10.0.0.0/8', 443, 'TCP'],
    ['2001:db8::1', '2001:db8::1/128', 0, 'TCP,UDP'],
    ['fd00::/8', 'fd00::/8', 0, 'TCP,UDP'],
    ['[2001:db8::1]:443', '2001:db8::1/128', 443, 'TCP,UDP'],
    ['[fd00::/8]:53/udp', 'fd00::/8', 53, 'UDP'],
    ['::ffff:10.1.2.3', '10.1.2.3/32', 0, 'TCP,UDP'],
  ]
  for (const [text, pattern, port, protocols] of rows) {
    const allow = mkAllow(text)
    assert.deepEqual(
      [targetOf(allow), allow.port, allow.protocols.join()],
      [pattern, port, protocols],
    )
  }
})

test('parseAllow reports the column of a fault', () => {
  const rows: readonly (readonly [text: string, column: number, why: RegExp])[] = [
    ['', 1, /an empty text/],
    ['a b.example', 2, /the character " "/],
    ['exämple.com', 3, /the character "ä"/],
    ['a..example', 3, /an empty label/],
    ['.example', 1, /an empty label/],
    ['example.com:', 13, /found "", expected a port/],
    ['example.com:0', 13, /a port from 1 to 65535/],
    ['example.com:65536', 13, /a port from 1 to 65535/],
    ['example.com:https', 13, /found "https"/],
    ['example.com:443/sctp', 17, /expected tcp or udp/],
    ['example.com:443/tcp/x', 17, /found "tcp\/x"/],
    ['example.com:443:tcp', 13, /found "443:tcp"/],
    ['[2001:db8::1', 1, /the character "\["/],
    ['[2001:db8::1]443', 14, /found "443", expected :PORT/],
    ['[2001:db8::1]:x', 15, /found "x", expected a port/],
    ['10.0.0.1/8', 1, /host bits must be zero: write 10\.0\.0\.0\/8/],
    ['[fd00::/200]', 2, /a prefix length of 0 to 128/],
    ['10.1.2.3/33:80', 1, /a prefix length of 0 to 32/],
  ]
  for (const [text, column, why] of rows) {
    const result = parseAllow(text)
    assert.ok(result.kind === 'bad', text)
    assert.equal(result.column, column, text)
    assert.match(result.reason, why)
  }
})

test('allowPolicy is a policy that the loader takes, with a rule for each option', () => {
  const document = allowPolicy(['*.packages.example', 'github.com:443/tcp'].map(mkAllow))
  const { policies, faults } = loadPolicyObjects(document, 'exec')
  assert.deepEqual(faults, [])
  const [policy] = policies
  assert.equal(policy?.defaultDeny, true)
  assert.equal(policy?.rules.length, 3)
})

test('allowPolicy of addresses alone lets the command reach them and ask nothing', () => {
  const document = allowPolicy(['10.1.2.3:5432/tcp'].map(mkAllow))
  const { policies, faults } = loadPolicyObjects(document, 'exec')
  assert.deepEqual(faults, [])
  const [rule, ...more] = policies[0]?.rules ?? []
  assert.deepEqual(more, [])
  assert.equal(rule?.peers.kind === 'selectors' && rule.peers.selectors[0]?.kind, 'cidr')
})

test('allowPolicy of nothing denies everything', () => {
  const { policies, faults } = loadPolicyObjects(allowPolicy([]), 'exec')
  assert.deepEqual(faults, [])
  assert.deepEqual([policies[0]?.defaultDeny, policies[0]?.rules.length], [true, 0])
})

test('recordingPolicy is a policy that the loader takes', () => {
  assert.deepEqual(loadPolicyObjects(recordingPolicy(), 'exec').faults, [])
})
