// What `namegate up` says on a host where another daemon already intercepts queries: which daemon, and the line that adds the workload to it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { besideDaemon, protects } from '../../../src/cli/up/beside-daemon.ts'
import type { KnownDaemon } from '../../../src/cli/up/other-daemon.ts'
import type { UpEndpoint, UpPlan } from '../../../src/cli/up/plan.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { parseEndpoints } from '../../../src/endpoints/file.ts'
import { planInterface } from '../../../src/cli/up/plan-host.ts'
import { BEHIND } from '../../support/up-facts.ts'

const FILE = '/srv/ng/endpoints.yaml'
const BLOCK = 'endpoints:\n  - name: box\n    addresses: [10.98.0.2]\n    interface: box0\n'
const TPROXY = '{ port: 10053, mode: tproxy }'
const CGROUPS = '{ port: 10053, mode: redirect, processes: cgroups }'

const INTERFACE: UpEndpoint = {
  name: 'job',
  addresses: ['10.98.1.2', 'fd00::2'],
  interface: { name: 'job0', hook: 'ingress' },
}
const CGROUP: UpEndpoint = { name: 'build', addresses: [], cgroup: 'build.slice' }

function planOf(endpoint: UpEndpoint): UpPlan {
  const plan = planInterface(BEHIND)
  return { ...plan, name: endpoint.name, endpoints: { value: [endpoint], why: 'given' } }
}

function daemon(
  listener: string,
  text: string | undefined,
  more: Partial<KnownDaemon> & { readonly kind?: string } = {},
): KnownDaemon {
  const { kind = 'ebpf', ...others } = more
  const config = parseConfig(
    `listeners: [${listener}]\ndatapath: { kind: ${kind} }\n`,
    '/srv/ng/namegate.yaml',
  )
  const endpoints =
    text === undefined
      ? undefined
      : { file: FILE, text, records: parseEndpoints(text, FILE).endpoints }
  return { config, endpoints, list: undefined, isKept: true, ...others }
}

function saidOf(endpoint: UpEndpoint, known: KnownDaemon | undefined): string {
  return besideDaemon(planOf(endpoint), { pid: 12, known }).message
}

const ROWS: readonly (readonly [
  why: string,
  endpoint: UpEndpoint,
  known: KnownDaemon | undefined,
  said: readonly RegExp[],
])[] = [
  [
    'the daemon and the command that adds the workload to it',
    INTERFACE,
    daemon(TPROXY, BLOCK),
    [
      /for job: the namegate with pid 12 \(configuration \/srv\/ng\/namegate\.yaml\) already intercepts/,
      /\n +echo '  - \{ name: job, addresses: \["10\.98\.1\.2", "fd00::2"\], labels: \{ app: job \}, interface: job0, hook: ingress \}' >> \/srv\/ng\/endpoints\.yaml\n/,
      /policies of that daemon apply to it, not the options/,
    ],
  ],
  [
    'the list of a daemon of up',
    INTERFACE,
    daemon(TPROXY, BLOCK, { list: '/run/up.allow', isKept: false }),
    [/for all its workloads:\n +echo NAME >> \/run\/up\.allow$/],
  ],
  [
    'a name that another endpoint has: another name',
    { ...INTERFACE, name: 'box' },
    daemon(TPROXY, BLOCK),
    [/- \{ name: box-2, .*labels: \{ app: box \}/],
  ],
  [
    'a list in brackets, to which no line can be appended',
    INTERFACE,
    daemon(TPROXY, 'endpoints: [\n  ]\n'),
    [/inside the brackets of \/srv\/ng\/endpoints\.yaml, add:\n +\{ name: job, .*\},\n/],
  ],
  [
    'no file of endpoints',
    INTERFACE,
    daemon(TPROXY, undefined),
    [/no file of endpoints: .*endpoints\.files.*\n +endpoints:\n +- \{ name: job/],
  ],
  [
    'a workload that the daemon protects already',
    { ...INTERFACE, interface: { name: 'box0', hook: 'ingress' } },
    daemon(TPROXY, BLOCK),
    [
      /protects it already: endpoint box of \/srv\/ng\/endpoints\.yaml\.\n +The policies of that daemon/,
    ],
  ],
  [
    'a cgroup beside a cgroup',
    CGROUP,
    daemon(CGROUPS, 'endpoints:\n- { name: jobs, cgroup: jobs.slice }\n'),
    [/\n +echo '- \{ name: build, labels: \{ app: build \}, cgroup: build\.slice \}' >> /],
  ],
  [
    'a cgroup and only TPROXY: the queries would reach no listener',
    CGROUP,
    daemon(TPROXY, BLOCK),
    [
      /no listener for it\. Add this line .*start it again:\n +- \{ port: 10054, mode: redirect, processes: cgroups \}\n/,
      /\n +echo '  - \{ name: build/,
    ],
  ],
  [
    'a cgroup and the TPROXY daemon of up, whose configuration ends with it',
    CGROUP,
    daemon(TPROXY, BLOCK, { list: '/run/up.allow', isKept: false }),
    [/no listener for it.*\n.*docs\/install\.md, "Several workloads"\.$/],
  ],
  [
    'a cgroup and a daemon with nftables',
    CGROUP,
    daemon(TPROXY, BLOCK, { kind: 'nftables' }),
    [/cannot protect a cgroup: only the eBPF datapath can, and it has nftables\.\n.*--netns/],
  ],
  [
    'an interface and only cgroups',
    INTERFACE,
    daemon(CGROUPS, BLOCK),
    [/\n +- \{ port: 10054, mode: tproxy \}\n/],
  ],
  [
    'an interface that no listener names',
    INTERFACE,
    daemon('{ port: 10053, mode: tproxy, interfaces: [box0, veth*] }', BLOCK),
    [/\n +- \{ port: 10054, mode: tproxy, interfaces: \[job0\] \}\n/],
  ],
  [
    'an interface whose beginning a listener names',
    INTERFACE,
    daemon('{ port: 10053, mode: tproxy, interfaces: [jo*] }', BLOCK),
    [/can protect it too.*\n +echo /],
  ],
  [
    'a daemon in a container',
    INTERFACE,
    undefined,
    [/the namegate with pid 12 already intercepts.*\n +End it.*cannot be read from here/],
  ],
]
for (const [why, endpoint, known, said] of ROWS) {
  test(`besideDaemon names ${why}`, () => {
    for (const pattern of said) assert.match(saidOf(endpoint, known), pattern)
  })
}

test('besideDaemon prints a line that the endpoints file accepts', () => {
  const [, line = ''] = /echo '([^']+)' >> /.exec(saidOf(INTERFACE, daemon(TPROXY, BLOCK))) ?? []
  const { endpoints, faults } = parseEndpoints(`${BLOCK}${line}\n`, FILE)
  assert.deepEqual(faults, [])
  assert.deepEqual(
    endpoints.map(({ name }) => name),
    ['box', 'job'],
  )
})

test('protects compares interfaces of this host, and not those inside the namespace of the workload', () => {
  const known = daemon(TPROXY, BLOCK)
  const inner: UpEndpoint = { ...INTERFACE, interface: { name: 'box0', hook: 'egress' } }
  const inside: UpPlan = { ...planOf(inner), namespace: '/run/netns/job' }
  assert.equal(protects({ pid: 12, known }, { ...inside, outer: ['job0'] }), false)
  assert.equal(protects({ pid: 12, known }, { ...inside, outer: ['box0'] }), true)
  assert.equal(protects({ pid: 12, known: undefined }, { ...inside, outer: ['box0'] }), false)
})
