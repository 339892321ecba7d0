// The whole texts for nft, ip and iptables-restore. A change of a rule changes them here. test/kernel/intercept/ shows what they do to
// packets.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { iptablesText } from '../../src/intercept/iptables-text.ts'
import {
  bridgesChanged,
  installScript,
  levelsChanged,
  removeScript,
  updateScript,
} from '../../src/intercept/nft-script.ts'
import type { InterceptPlan } from '../../src/intercept/plan.ts'
import { routingSteps } from '../../src/intercept/routing.ts'
import { aboutOf } from '../../src/intercept/rules.ts'
import type { PartNames } from '../../src/intercept/targets.ts'
import { mkPlan } from '../support/labs/intercept-plans.ts'

const TPROXY = mkPlan({
  listeners:
    "{ port: 10053, mode: tproxy, interfaces: ['lxc*'] }, { address: '::1', port: 54, mode: tproxy }",
})
const TPROXY_NAMES = [
  { routed: ['br0'], bridges: ['br0'], ports: ['veth1'] },
  { routed: [], bridges: [], ports: [] },
]
const REDIRECT = mkPlan({
  listeners:
    "{ address: 127.0.0.1, port: 5300, mode: redirect }, { address: 'fd00::1', port: 53, mode: redirect }",
})
const BOTH = mkPlan({
  listeners: '{ port: 10053, mode: tproxy, interfaces: [eth0] }, { port: 5300, mode: redirect }',
  more: 'upstreams: { original-destination: true, untrusted: pass }',
  hasIpv6: false,
})
const BOTH_NAMES = [{ routed: ['eth0'], bridges: [], ports: [] }]

const ROWS: readonly (readonly [file: string, plan: InterceptPlan, names: readonly PartNames[]])[] =
  [
    ['tproxy', TPROXY, TPROXY_NAMES],
    ['redirect', REDIRECT, []],
    ['both-ipv4', BOTH, BOTH_NAMES],
  ]

const CGROUPS = mkPlan({ listeners: '{ port: 5300, mode: redirect, processes: cgroups }' })
const LEVELS = [
  { level: 1, paths: ['job.slice', 'unified/odd name.slice'] },
  { level: 3, paths: ['user.slice/user-1000.slice/app.slice'] },
]

function expected(name: string): string {
  return readFileSync(new URL(`expected/${name}`, import.meta.url), 'utf8')
}

for (const [file, plan, names] of ROWS) {
  test(`installScript and iptablesText equal expected/${file}`, () => {
    const script = installScript({ plan, names, cgroups: [], about: 'text', withBridge: true })
    assert.equal(script, expected(`${file}.nft`))
    assert.equal(iptablesText(plan, names), expected(`${file}.iptables`))
  })
}

test('installScript redirects only the queries of the cgroups', () => {
  const options = { plan: CGROUPS, names: [], about: 'text', withBridge: true }
  assert.equal(installScript({ ...options, cgroups: LEVELS }), expected('cgroups.nft'))
  assert.doesNotMatch(installScript({ ...options, cgroups: [] }), /goto redirected|guarded" drop/)
})

test('updateScript writes the cgroups that differ, and levelsChanged is true for other levels', () => {
  const sets = new Map([
    ['inet cgroups1', ['5034']],
    ['inet cgroups3', LEVELS[1]?.paths ?? []],
  ])
  assert.equal(levelsChanged(LEVELS, sets), false)
  assert.equal(levelsChanged(LEVELS.slice(1), sets), true, 'a level is gone')
  assert.equal(levelsChanged(LEVELS, new Map([...sets].slice(1))), true, 'a level is new')
  const change = 'inet namegate_intercept cgroups1'
  assert.equal(
    updateScript({ names: [], cgroups: LEVELS }, sets),
    `flush set ${change}\nadd element ${change} { "job.slice", "unified/odd name.slice" }\n`,
    'a cgroup that was made again has another number',
  )
})

test('installScript leaves the bridge out if the kernel has none for it', () => {
  const script = installScript({
    plan: TPROXY,
    names: TPROXY_NAMES,
    cgroups: [],
    about: '',
    withBridge: false,
  })
  assert.doesNotMatch(script, /table bridge/)
})

test('updateScript writes the sets that differ, or nothing', () => {
  const sets = new Map([
    ['inet interfaces0', ['br0']],
    ['bridge interfaces0', ['veth1']],
    ['inet interfaces1', ['gone0']],
  ])
  const script = updateScript({ names: TPROXY_NAMES, cgroups: [] }, sets)
  assert.equal(
    script,
    'flush set inet namegate_intercept interfaces1\n',
    'a missing set is left out',
  )
  sets.set('inet interfaces1', []).set('inet interfaces0', [])
  assert.equal(
    updateScript({ names: TPROXY_NAMES, cgroups: [] }, sets),
    'flush set inet namegate_intercept interfaces0\nadd element inet namegate_intercept interfaces0 { "br0" }\n',
  )
  sets.set('inet interfaces0', ['br0'])
  assert.equal(updateScript({ names: TPROXY_NAMES, cgroups: [] }, sets), '')
})

test('bridgesChanged is true when a bridge was added or removed, because the chain must be added after it', () => {
  const sets = new Map([
    ['inet bridges0', ['br0']],
    ['inet bridges1', []],
  ])
  assert.equal(bridgesChanged(TPROXY_NAMES, sets), false)
  assert.equal(bridgesChanged(TPROXY_NAMES, sets.set('inet bridges0', [])), true)
  assert.equal(bridgesChanged(TPROXY_NAMES, sets.set('inet bridges0', ['br0', 'br1'])), true)
})

test('removeScript names the existing tables', () => {
  assert.equal(
    removeScript(['inet', 'bridge']),
    'delete table inet namegate_intercept\ndelete table bridge namegate_intercept\n',
  )
})

test('routingSteps exist only for TPROXY, in the families with a listener', () => {
  assert.deepEqual(routingSteps(REDIRECT), [])
  assert.deepEqual(
    routingSteps(BOTH).map(({ add }) => add.join(' ')),
    [
      '-4 route add local default dev lo table 20039 protocol 78',
      '-4 rule add pref 55 nop protocol 78',
      '-4 rule add pref 53 iif lo fwmark 0x4e47 goto 55 protocol 78',
      '-4 rule add pref 54 fwmark 0x4e47 lookup 20039 protocol 78',
    ],
  )
})

test('aboutOf separates plans by their rules, in the length of an nftables comment', () => {
  const texts = [TPROXY, REDIRECT, BOTH, { ...TPROXY, mark: 1 }, { ...TPROXY, table: 1 }].map(
    aboutOf,
  )
  assert.equal(new Set(texts).size, texts.length)
  assert.equal(aboutOf({ ...TPROXY }), aboutOf(TPROXY))
  assert.ok(texts.every((text) => text.length < 128))
})
