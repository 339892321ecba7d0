import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { endpointId, generation } from '../../../../src/core/ids.ts'
import { cgroupMount, cgroupPath } from '../../../../src/native/cgroup-mount.ts'
import {
  decodeEndpoint,
  decodeHookKey,
  decodeMode,
  decodePolicy,
  decodeSource,
  encodeEndpoint,
  encodeHookKey,
  encodeMode,
  encodeNumber,
  encodePolicyKey,
  encodePolicyValue,
  encodeSource,
  STAT_NAMES,
} from '../../../../src/datapath/ebpf/maps/layout.ts'
import { policy, prefix } from '../../../contract/bench.ts'

const header = readFileSync('src/datapath/ebpf/programs/layout.h', 'utf8')

test('STAT_NAMES has a name for every counter of layout.h', () => {
  const list = /enum stat \{([^}]*)\}/.exec(header)?.[1] ?? ''
  const counters = list.split(',').map((each) => each.trim())
  assert.equal(counters.at(-1), 'STATS')
  assert.equal(STAT_NAMES.length, counters.length - 1)
})

test('encodePolicyKey writes endpoint, identity, protocol and port in network order after the bits', () => {
  const rows = [
    [policy({}), 64, '00000005 00000000 00 0000'],
    [policy({ identity: 9, protocol: 6 }), 72, '00000005 00000009 06 0000'],
    [policy({ identity: 2 ** 24, protocol: 6, port: 443 }), 88, '00000005 01000000 06 01bb'],
    [policy({ protocol: 17, port: 440, portBits: 13 }), 85, '00000005 00000000 11 01b8'],
  ] as const
  for (const [entry, bits, text] of rows) {
    const key = new Uint8Array(16)
    encodePolicyKey(entry, key, 0)
    assert.deepEqual(key.subarray(0, 4), encodeNumber(bits))
    assert.equal(Buffer.from(key.subarray(4, 15)).toString('hex'), text.replaceAll(' ', ''))
  }
})

test('decodePolicy returns what was encoded', () => {
  for (const verdict of ['allow', 'deny', 'audit'] as const) {
    const entry = policy({ identity: 77, protocol: 6, port: 440, portBits: 13, verdict, rule: 9 })
    const [key, value] = [new Uint8Array(16), new Uint8Array(8)]
    encodePolicyKey(entry, key, 0)
    encodePolicyValue(entry, value, 0)
    assert.deepEqual(decodePolicy(key, 0, value, 0), entry)
  }
})

test('decodeEndpoint, decodeHookKey, decodeSource and decodeMode return what was encoded', () => {
  for (let flags = 0; flags < 64; flags++) {
    const value = {
      id: endpointId(2 ** 31 - 1),
      generation: generation(3),
      enforcing: (flags & 1) !== 0,
      audit: (flags & 2) !== 0,
      layer3: (flags & 4) !== 0,
      scoped: (flags & 8) !== 0,
      fenced: (flags & 16) !== 0,
      attached: (flags & 32) !== 0,
    }
    assert.deepEqual(decodeEndpoint(encodeEndpoint(value), 0), value)
  }
  for (const kind of ['interface', 'cgroup'] as const) {
    const key = { kind, id: 2 ** 40 + 1 }
    assert.deepEqual(decodeHookKey(encodeHookKey(key), 0), key)
  }
  for (const text of ['10.0.0.0/8', '2001:db8::/32', '0.0.0.0/0']) {
    const encoded = encodeSource(endpointId(5), prefix(text))
    assert.deepEqual(decodeSource(encoded, 0), [endpointId(5), prefix(text)])
  }
  for (const mode of ['enforce', 'audit', 'bypass'] as const) {
    assert.equal(decodeMode(encodeMode(mode)), mode)
  }
  assert.equal(decodeMode(encodeNumber(77)), 'enforce', 'an unknown mode is closed')
})

test('cgroupMount finds cgroup2 beside version 1, and paths with spaces', () => {
  const rows: readonly (readonly [string, string | undefined, string])[] = [
    ['33 25 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw', '/sys/fs/cgroup', 'alone'],
    [
      [
        '30 25 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw',
        '31 30 0:26 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu',
        '32 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw',
      ].join('\n'),
      '/sys/fs/cgroup/unified',
      'beside version 1',
    ],
    ['33 25 0:28 / /mnt/a\\040b rw - cgroup2 none rw', '/mnt/a b', 'escaped'],
    ['33 25 0:28 / / rw - ext4 /dev/vda rw', undefined, 'none'],
  ]
  for (const [text, mount, reason] of rows) assert.equal(cgroupMount(text), mount, reason)
})

test('cgroupPath stays inside the mount and refuses the root', () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['shop.slice', '/cg/shop.slice'],
    ['/a/b/', '/cg/a/b'],
    ['./a', '/cg/a'],
    ['', undefined],
    ['/', undefined],
    ['../etc', undefined],
    ['a/../../b', undefined],
  ]
  for (const [configured, path] of rows) {
    const got = cgroupPath('/cg', configured)
    assert.equal(got.kind === 'ok' ? got.path : undefined, path, configured)
  }
  assert.equal(cgroupPath(undefined, 'a').kind, 'bad')
})
