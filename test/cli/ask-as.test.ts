// `namegate ask --as ENDPOINT` with a real daemon and a real server: the answer that the endpoint would get, wherever the command runs, and
// what the daemon learns from it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import type { Output } from '../support/labs/lab-process.ts'
import { answerTo, FakeUpstream } from '../support/peers/upstream.ts'

const ADDRESS = '198.51.100.7'
const ENDPOINTS = `${endpointsText({ me: '127.0.0.1', shop: '10.9.8.7' })}
  - { name: job, cgroup: job.slice, labels: { app: job } }
`
const POLICY = [
  policyText('web', ['ok.example', 'gone.example', 'silent.example'], { app: 'shop' }),
  policyText('jobs', ['job.example'], { app: 'job' }),
  `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: tcp }
spec:
  endpointSelector: { matchLabels: { app: job } }
  egress:
    - toPorts:
        - ports: [{ port: "53", protocol: TCP }]
          rules: { dns: [{ matchName: tcp.example }] }
    - toPorts:
        - ports: [{ port: "53", protocol: UDP }]
          rules: { dns: [{ matchName: udp.example }] }
`,
].join('---\n')
const UPSTREAM_MS = 300

let upstream: FakeUpstream
const folders: DaemonFolder[] = []
const daemons: RunningDaemon[] = []
let folder: DaemonFolder

before(async () => {
  upstream = await FakeUpstream.start()
  upstream.behaviour = (query) => {
    if (query.name === 'silent.example') return
    const isGone = query.name === 'gone.example'
    query.send(answerTo(query, isGone ? { rcode: 3, addresses: [] } : { addresses: [ADDRESS] }))
  }
  folder = await serve({})
})

after(async () => {
  await Promise.all(daemons.map(async (daemon) => await daemon.process.stop()))
  await upstream.stop()
  for (const each of folders) each.remove()
})

async function serve(
  config: Readonly<Record<string, string>>,
  endpoints = ENDPOINTS,
): Promise<DaemonFolder> {
  const servers = `{ servers: ["127.0.0.1:${upstream.port}"], timeout: ${UPSTREAM_MS}ms, attempts: 1 }`
  const made = new DaemonFolder({
    files: { 'policy.yaml': POLICY, 'endpoints.yaml': endpoints },
    config: { upstreams: servers, ...config },
  })
  folders.push(made)
  daemons.push(await made.serve())
  return made
}

async function ask(...args: readonly string[]): Promise<Output> {
  return await folder.namegate('ask', ...args)
}

const ROWS: readonly (readonly [
  why: string,
  args: readonly string[],
  code: number,
  out: RegExp,
])[] = [
  [
    'policy allows it',
    ['ok.example', '--as', 'shop'],
    0,
    /^ok\.example\. A: NOERROR[^]*198\.51\.100\.7\n[^]*decision: .* allow shop +A ok\.example NOERROR/,
  ],
  ['over TCP', ['ok.example', '--as', 'shop', '--tcp'], 0, /NOERROR over TCP [^]* allow shop /],
  ['another type', ['ok.example', 'TXT', '--as', 'shop'], 0, /TXT: NOERROR[^]* allow shop +TXT /],
  ['a name that is not', ['gone.example', '--as', 'shop'], 0, /NXDOMAIN[^]* allow shop /],
  [
    'policy denies it',
    ['job.example', '--as', 'shop'],
    1,
    /REFUSED[^]*EDE: 15 \(Blocked\)[^]*decision: .* deny +shop +A job\.example .*, client namegate\n/,
  ],
  ['of another endpoint', ['job.example', '--as', 'job'], 0, /NOERROR[^]* allow job /],
  ['which may not ask the first', ['ok.example', '--as', 'job'], 1, /REFUSED[^]* deny +job /],
  [
    'policy allows it over TCP',
    ['tcp.example', '--as', 'job', '--tcp'],
    0,
    /NOERROR[^]* allow job /,
  ],
  [
    'policy allows it over TCP alone',
    ['tcp.example', '--as', 'job'],
    1,
    /REFUSED over UDP [^]* deny +job /,
  ],
  [
    'policy allows it over UDP alone',
    ['udp.example', '--as', 'job'],
    0,
    /NOERROR over UDP [^]* allow job /,
  ],
  [
    'policy allows it over UDP alone',
    ['udp.example', '--as', 'job', '--tcp'],
    1,
    /REFUSED over TCP [^]* deny +job /,
  ],
  ['no policy selects it', ['job.example', '--as', 'me'], 0, /NOERROR[^]* allow me /],
  ['no server answers', ['silent.example', '--as', 'shop'], 1, /SERVFAIL[^]*EDE: 22/],
]
for (const [why, args, code, out] of ROWS) {
  test(`namegate ${['ask', ...args].join(' ')}: ${why}`, async () => {
    const output = await ask(...args)
    assert.match(output.stdout, out)
    assert.deepEqual([output.code, output.stderr], [code, ''])
  })
}

test('namegate ask --as teaches what the endpoint itself would have learned', async () => {
  assert.equal((await ask('ok.example', '--as', 'shop')).code, 0)
  const { stdout } = await folder.namegate('get', 'names', '-o', 'json')
  const rows = JSON.parse(stdout) as readonly { name: string; endpoint: string }[]
  const learned = rows.filter(({ name }) => name === 'ok.example')
  assert.deepEqual(
    learned.map(({ endpoint }) => endpoint),
    ['shop'],
  )
})

test('namegate ask --as prints JSON with answer and decision', async () => {
  const { stdout } = await ask('ok.example', '--as', 'shop', '-o', 'json')
  const answer = JSON.parse(stdout) as {
    rcode: string
    answers: readonly { data: string }[]
    decision: { endpoint: string; verdict: string }
  }
  assert.deepEqual(
    [answer.rcode, answer.answers[0]?.data, answer.decision.endpoint, answer.decision.verdict],
    ['NOERROR', ADDRESS, 'shop', 'allow'],
  )
})

test('namegate ask --as of an endpoint in audit gets an answer that policy would deny', async () => {
  assert.equal((await folder.namegate('audit', 'on', '--endpoint', 'shop')).code, 0)
  try {
    const { code, stdout } = await ask('job.example', '--as', 'shop')
    assert.equal(code, 0)
    assert.match(stdout, /NOERROR[^]*198\.51\.100\.7/)
  } finally {
    await folder.namegate('audit', 'reset', '--endpoint', 'shop')
  }
})

test('namegate ask --as refuses an unknown endpoint', async () => {
  const { code, stderr } = await ask('ok.example', '--as', 'nobody')
  assert.deepEqual([code, stderr], [2, 'namegate: no endpoint is named "nobody"\n'])
})

test('namegate ask --as shows that denied queries get no answer where they are dropped', async () => {
  const dropping = await serve({ dns: '{ deny-response: drop }' })
  const { code, stdout } = await dropping.namegate('ask', 'job.example', '--as', 'shop')
  assert.equal(code, 1)
  assert.match(stdout, /^job\.example\. A: no answer over UDP\ndecision: .* deny +shop /)
})

test('namegate ask without --as takes the only endpoint of a daemon that intercepts', async () => {
  const one = endpointsText({ shop: '10.9.8.7' })
  const intercepting = await serve(
    { listeners: `[{ port: ${await freePort()}, mode: redirect }]` },
    one,
  )
  const { code, stdout, stderr } = await intercepting.namegate('ask', 'ok.example')
  assert.match(stdout, /NOERROR[^]* allow shop /)
  assert.deepEqual([code, stderr], [0, 'namegate: for shop, the only endpoint\n'])
})
