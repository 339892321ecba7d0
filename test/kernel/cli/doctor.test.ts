// `namegate doctor` in a network namespace that has rules and routes of other programs. It changes none of them.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { toJson } from '../../../src/cli/command.ts'
import type { Finding } from '../../../src/cli/doctor/finding.ts'
import { checkFirewall, checkRouting } from '../../../src/cli/doctor/firewall.ts'
import { Machine } from '../../../src/cli/doctor/machine.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { outputIn, settings, snapshot, toolsIn } from '../../support/labs/intercept-lab.ts'
import { canUseLab, Lab } from '../../support/labs/lab.ts'
import { DaemonFolder, PROGRAM } from '../../support/nodes/daemon-process.ts'

const skip = canUseLab() ?? false
const lab = skip === false ? new Lab() : undefined
const folder = new DaemonFolder({
  files: { 'policy.yaml': '', 'endpoints.yaml': 'endpoints: []\n' },
})
after(async () => {
  await lab?.close()
  folder.remove()
})

const UPSTREAM = 'upstreams: { servers: ["192.0.2.53:53"] }'
const TPROXY = `listeners: [{ port: 10053, mode: tproxy }]\n${UPSTREAM}`
const EXPLICIT = UPSTREAM

const DNAT =
  'table ip other { chain pre { type nat hook prerouting priority -100; udp dport 53 dnat to 192.0.2.1; }; }'
const CLOSED = 'table inet fw { chain in { type filter hook input priority 0; policy drop; }; }'

interface Row {
  readonly why: string
  readonly rules?: string
  readonly ip?: readonly string[]
  readonly config: string
  readonly check: typeof checkFirewall
  readonly result: Finding['result']
  readonly found: RegExp
  readonly remedy?: RegExp
}

const ROWS: readonly Row[] = [
  {
    why: 'no other program has rules',
    config: TPROXY,
    check: checkFirewall,
    result: 'ok',
    found: /no rule of another/,
  },
  {
    why: 'another program redirects DNS, and namegate intercepts it',
    rules: DNAT,
    config: TPROXY,
    check: checkFirewall,
    result: 'problem',
    found: /^a rule of chain "ip other pre" sends port 53 elsewhere \(dnat\)$/,
    remedy: /nft delete rule ip other pre handle \d+$/,
  },
  {
    why: 'another program redirects DNS, and namegate is an explicit resolver',
    rules: DNAT,
    config: EXPLICIT,
    check: checkFirewall,
    result: 'warning',
    found: /sends port 53 elsewhere/,
    remedy: /nft delete rule/,
  },
  {
    why: "another program uses namegate's mark",
    rules:
      'table inet m { chain c { type filter hook output priority 0; meta mark 0x4e47 accept; }; }',
    config: TPROXY,
    check: checkFirewall,
    result: 'warning',
    found: /uses namegate's mark 0x4e47/,
    remedy: /intercept\.mark/,
  },
  {
    why: 'a rule would drop queries of workloads',
    rules: CLOSED,
    config: TPROXY,
    check: checkFirewall,
    result: 'warning',
    found: /chain "inet fw in" drops incoming packets/,
    remedy: /nft insert rule inet fw in meta l4proto \{ tcp, udp \} th dport 53 accept$/,
  },
  {
    why: 'doctor does not list many rules one by one',
    rules: `table inet d { chain c { type filter hook input priority 0; ${'udp dport 53 drop; '.repeat(7)} }; }`,
    config: EXPLICIT,
    check: checkFirewall,
    result: 'warning',
    found: /drops port 53 \(drop\)$|^2 more such rules$/,
    remedy: /nft/,
  },
  {
    why: 'the routing table has a route of another program',
    ip: ['route', 'add', 'blackhole', '198.51.100.0/24', 'table', '20039'],
    config: TPROXY,
    check: checkRouting,
    result: 'problem',
    found: /routing table 20039 has a route of another program/,
  },
  {
    why: 'the routing table is free',
    config: TPROXY,
    check: checkRouting,
    result: 'ok',
    found: /routing table 20039 are free/,
  },
]

for (const [i, { why, rules, ip, config, check, ...expected }] of ROWS.entries()) {
  test(`${check.name} in a namespace finds ${expected.result}: ${why}`, { skip }, async () => {
    const host = lab?.addHost(`doctor${i}`)
    assert.ok(host !== undefined)
    if (rules !== undefined) outputIn(host, 'nft', rules)
    if (ip !== undefined) host.ip(...ip)
    const before = snapshot(host)
    const machine = new Machine(toolsIn(host))
    const parsed = parseConfig(config, 'namegate.yaml', () => false)
    const findings = await check({ machine, config: parsed, status: undefined })
    assert.deepEqual(snapshot(host), before)
    assert.ok(findings.length > 0)
    for (const { result, found, remedy = '' } of findings) {
      assert.equal(result, expected.result, toJson(findings))
      assert.match(found, expected.found)
      assert.match(remedy, expected.remedy ?? /^$/)
    }
  })
}

test(
  'namegate doctor ends with 1 for a problem in its namespace, and changes nothing',
  { skip },
  async () => {
    const host = lab?.addHost('program')
    assert.ok(host !== undefined)
    outputIn(host, 'nft', DNAT)
    folder.configure({ listeners: '[{ port: 10053, mode: tproxy }]' })
    const before = [...snapshot(host), ...settings(host)]
    const args = ['doctor', '--config', folder.in('namegate.yaml')]
    const { code, stdout, stderr } = await host.run(PROGRAM, args, { limitMs: 60_000 })
    assert.equal(code, 1, `${stdout}${stderr}`)
    assert.match(
      stdout,
      /^PROBLEM +firewall +a rule of chain "ip other pre" sends port 53 elsewhere/m,
    )
    assert.match(stdout, /^ +remedy: if it must not: nft delete rule ip other pre handle \d+$/m)
    assert.match(stdout, /\d+ problems?/)
    assert.deepEqual([...snapshot(host), ...settings(host)], before)
  },
)
