import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { policySuggestCommand } from '../../src/cli/policy-suggest.ts'
import { InvalidInputError, UnavailableError } from '../../src/core/errors.ts'
import { loadAllowList } from '../../src/policy/load-allow-list.ts'
import { loadPolicies } from '../../src/policy/load.ts'
import { runCommand } from '../support/command.ts'

interface Line {
  readonly kind?: string
  readonly endpoint?: string | null
  readonly app?: string
  readonly name?: string | null
  readonly peer?: string
  readonly protocol?: string
  readonly port?: number
  readonly names?: readonly string[]
  readonly labels?: readonly string[]
  readonly deniedBy?: 'rule' | 'default'
  readonly node?: string
  readonly time?: string
  readonly last?: string
  readonly count?: number
}

/** A line as the daemon keeps it. */
function mkLine(given: Line): string {
  const { app = 'shop', endpoint = `${app}-1`, peer, ...rest } = given
  const shared = {
    time: '2026-01-02T03:04:05.678Z',
    endpoint,
    endpointLabels: [`external:app=${app}`],
    ...rest,
  }
  const packet = { kind: 'audit', peer, protocol: 'TCP', port: 443, names: [], labels: WORLD }
  const flow = peer === undefined ? { kind: 'answered', ...shared } : { ...packet, ...shared }
  return `${JSON.stringify(flow)}\n`
}

const WORLD = ['reserved:world', 'reserved:world-ipv4']

const NODE_1 = [
  mkLine({ name: 'api.example.com', count: 3, last: '2026-01-02T04:00:00.000Z', node: 'n1' }),
  mkLine({ name: 'a.cdn.example', node: 'n1' }),
  mkLine({ peer: '192.0.2.1', names: ['api.example.com', 'other.example'], node: 'n1', count: 7 }),
  mkLine({ peer: '192.0.2.9', port: 9418, node: 'n1' }),
]
const NODE_2 = [
  mkLine({ name: 'b.cdn.example', endpoint: 'shop-2', node: 'n2' }),
  mkLine({ name: 'time.example', endpoint: 'shop-2', node: 'n2' }),
  mkLine({
    peer: '192.0.2.3',
    protocol: 'UDP',
    port: 123,
    names: ['time.example'],
    endpoint: 'shop-2',
    node: 'n2',
  }),
  mkLine({ peer: '2001:db8::3', names: ['b.cdn.example'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '10.0.9.9', port: 5432, labels: ['k8s:app=db'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '169.254.169.254', port: 80, endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '10.0.0.1', port: 22, labels: ['reserved:host'], endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '192.0.2.7', deniedBy: 'rule', endpoint: 'shop-2', node: 'n2' }),
  mkLine({ peer: '192.0.2.1', protocol: 'ICMP', port: 0, endpoint: 'shop-2', node: 'n2' }),
]
const NODE_3 = [
  mkLine({ name: 'c.cdn.example', node: 'n3' }),
  mkLine({ peer: '192.0.2.4', names: ['c.cdn.example'], node: 'n3' }),
  mkLine({ peer: '192.0.2.4', port: 80, names: ['c.cdn.example'], node: 'n3' }),
  mkLine({ kind: 'denied', name: 'evil.example', node: 'n3' }),
  mkLine({ kind: 'drop', peer: '192.0.2.66', node: 'n3' }),
  mkLine({ kind: 'upstream-failed', name: 'down.example', node: 'n3' }),
  mkLine({ app: 'batch', name: 'jobs.example', node: 'n3' }),
  mkLine({ kind: 'unknown-client', endpoint: null, name: 'x.example', node: 'n3' }),
]

const SUGGESTED = `# Suggested by namegate from 20 flows of shop-1, shop-2 on n1, n2, n3, 2026-01-02T03:04:05Z to 2026-01-02T04:00:00Z.
# Read it before you use it.
# Left out, because a rule denies it: 192.0.2.7:443/TCP (1 flow of shop-2 on n2, 2026-01-02T03:04:05Z)
# Left out, because it is an address of the node: 10.0.0.1:22/TCP (1 flow of shop-2 on n2, 2026-01-02T03:04:05Z)
# Left out, because its address is guarded: 169.254.169.254:80/TCP (1 flow of shop-2 on n2, 2026-01-02T03:04:05Z)
# Left out, because its protocol has no ports: 192.0.2.1 ICMP (1 flow of shop-2 on n2, 2026-01-02T03:04:05Z)
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: suggested-shop
  namespace: default
spec:
  endpointSelector:
    matchLabels:
      app: shop
  egress:
    # asked: 7 flows of shop-1, shop-2 on n1, n2, n3, 2026-01-02T03:04:05Z to 2026-01-02T04:00:00Z
    - toPorts:
        - ports:
            - { port: '53', protocol: ANY }
          rules:
            dns:
              - matchName: api.example.com
              - matchName: a.cdn.example
              - matchName: b.cdn.example
              - matchName: c.cdn.example
              - matchName: time.example
    # 2 flows of shop-1 on n3, 2026-01-02T03:04:05Z
    - toFQDNs:
        - matchName: c.cdn.example
      toPorts:
        - ports:
            - { port: '80', protocol: TCP }
            - { port: '443', protocol: TCP }
    # 1 flow of shop-2 on n2, 2026-01-02T03:04:05Z
    - toFQDNs:
        - matchName: time.example
      toPorts:
        - ports:
            - { port: '123', protocol: UDP }
    # 8 flows of shop-1, shop-2 on n1, n2, 2026-01-02T03:04:05Z
    - toFQDNs:
        - matchName: api.example.com
        - matchName: b.cdn.example
      toPorts:
        - ports:
            - { port: '443', protocol: TCP }
    # 1 flow of shop-2 on n2, 2026-01-02T03:04:05Z
    - toEndpoints:
        - matchLabels:
            app: db
      toPorts:
        - ports:
            - { port: '5432', protocol: TCP }
    # 1 flow of shop-1 on n1, 2026-01-02T03:04:05Z
    # No name was answered with these addresses.
    - toCIDR:
        - '192.0.2.9/32'
      toPorts:
        - ports:
            - { port: '9418', protocol: TCP }
`

describe('policySuggestCommand', () => {
  let folder = ''
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'suggest-'))
    put('n1.jsonl', NODE_1)
    put('n2.jsonl', NODE_2)
    put('n3.jsonl', NODE_3)
  })
  after(() => rmSync(folder, { recursive: true }))

  function put(name: string, lines: readonly string[]): string {
    writeFileSync(join(folder, name), lines.join(''))
    return join(folder, name)
  }

  function nodes(...order: readonly string[]): readonly string[] {
    return ['--flows', ...order.map((name) => join(folder, `${name}.jsonl`))]
  }

  async function suggest(...args: readonly string[]) {
    return await runCommand(policySuggestCommand, ...args)
  }

  it('makes of the flows of three nodes the smallest policy, and says what each rule rests on', async () => {
    const { code, out, err } = await suggest(...nodes('n1', 'n2', 'n3'), '--labels', 'app=shop')
    assert.equal(out, SUGGESTED)
    assert.equal(code, 0)
    assert.equal(
      err,
      'namegate: 2 flows that policy denied are not suggested\nnamegate: 1 line is about other endpoints\n',
    )
    assert.deepEqual(loadPolicies(out, 'suggested.yaml').faults, [])
  })

  it('gives the same text whatever the order of the files', async () => {
    const one = await suggest(...nodes('n1', 'n2', 'n3'))
    for (const order of [
      ['n3', 'n1', 'n2'],
      ['n2', 'n3', 'n1'],
    ]) {
      assert.equal((await suggest(...nodes(...order))).out, one.out)
    }
  })

  it('makes a policy for each set of labels, and none twice by one name', async () => {
    const { out } = await suggest(...nodes('n1', 'n2', 'n3'))
    const { policies, faults } = loadPolicies(out, 'suggested.yaml')
    assert.deepEqual(faults, [])
    assert.deepEqual(
      policies.map(({ name }) => name),
      ['suggested-batch', 'suggested-shop'],
    )
  })

  it('proposes nothing when it is run on its own result', async () => {
    for (const more of [[], ['--collapse', '3'], ['--labels', 'app=shop']]) {
      const { out } = await suggest(...nodes('n1', 'n2', 'n3'), ...more)
      const file = put('suggested.yaml', [out])
      const again = await suggest(...nodes('n1', 'n2', 'n3'), ...more, '--policies', file)
      assert.equal(again.out, '')
      assert.match(again.err, /nothing to suggest/)
      assert.equal(again.code, 0)
    }
  })

  it('adds only what the policies that are there do not allow', async () => {
    const file = put('some.yaml', [
      SUGGESTED.replace("            - { port: '80', protocol: TCP }\n", '').replace(
        '              - matchName: time.example\n',
        '',
      ),
    ])
    const { out } = await suggest(
      ...nodes('n1', 'n2', 'n3'),
      '--labels',
      'app=shop',
      '--policies',
      file,
    )
    assert.match(
      out,
      /dns:\n              - matchName: time\.example\n    # 1 flow of shop-1 on n3, 2026-01-02T03:04:05Z\n    - toFQDNs:\n        - matchName: c\.cdn\.example\n      toPorts:\n        - ports:\n            - \{ port: '80', protocol: TCP \}\n$/,
    )
  })

  it('leaves out what a deny rule denies, which no other rule can allow', async () => {
    const file = put('deny.yaml', [
      'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: deny }\nspec:\n  endpointSelector: { matchLabels: { app: shop } }\n  egressDeny: [{ toCIDR: [192.0.2.9/32] }]\n',
    ])
    const { out } = await suggest(...nodes('n1'), '--policies', file)
    assert.match(out, /^# Left out, because a rule denies it: 192\.0\.2\.9:9418\/TCP/m)
    assert.doesNotMatch(out, /toCIDR/)
  })

  it('makes patterns of siblings from the number on that it is told, and says for how many names', async () => {
    const { out } = await suggest(
      ...nodes('n1', 'n2', 'n3'),
      '--labels',
      'app=shop',
      '--collapse',
      '3',
    )
    assert.match(out, /    # \*\.cdn\.example stands for 3 names\.\n    - toPorts:/)
    assert.match(out, /              - matchPattern: '\*\.cdn\.example'\n/)
    assert.doesNotMatch(out, /toFQDNs:\n +- matchPattern/, 'two were reached at 443, one at 80')
    const many = Array.from({ length: 64 }, (_, i) => mkLine({ name: `n${i}.many.example` }))
    assert.match(
      (await suggest('--flows', put('many.jsonl', many))).out,
      /\*\.many\.example stands for 64 names/,
    )
    const fewer = await suggest('--flows', put('many.jsonl', many.slice(1)))
    assert.doesNotMatch(fewer.out, /\*/)
  })

  it('makes a pattern at the port that siblings share, and leaves the others what else they were reached at', async () => {
    const reached = (label: string, port: number): string =>
      mkLine({ peer: '192.0.2.1', port, names: [`${label}.cdn.example`] })
    const file = put('ports.jsonl', [
      reached('a', 443),
      reached('b', 443),
      reached('c', 443),
      reached('a', 80),
    ])
    const { out } = await suggest('--flows', file, '--collapse', '3')
    const rules = out.split('\n').filter((line) => /match(?:Name|Pattern)|port:/.test(line))
    assert.deepEqual(
      rules.map((line) => line.trim()),
      [
        '- matchName: a.cdn.example',
        "- { port: '80', protocol: TCP }",
        "- matchPattern: '*.cdn.example'",
        "- { port: '443', protocol: TCP }",
      ],
    )
    assert.match(out, /# 3 flows of shop-1, .*\n    # \*\.cdn\.example stands for 3 names\./)
  })

  it('prints an allow-list that says less, and says what it leaves out', async () => {
    const { out } = await suggest(
      ...nodes('n1', 'n2', 'n3'),
      '--labels',
      'app=shop',
      '--format',
      'allow-list',
    )
    const { policies, faults } = loadAllowList(out, 'shop.allow', { matchLabels: new Map() })
    assert.deepEqual(faults, [])
    assert.equal(policies.length, 1)
    const lines = out.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    assert.deepEqual(lines, [
      'c.cdn.example:80/tcp',
      'c.cdn.example:443/tcp',
      'time.example:123/udp',
      'api.example.com:443/tcp',
      'b.cdn.example:443/tcp',
    ])
    assert.match(out, /^# Left out, because it was asked and never reached: a\.cdn\.example$/m)
    assert.match(out, /^# Left out, because a list has names only: 192\.0\.2\.9\/32 9418\/tcp/m)
    assert.match(out, /^# For policies\.allow-list-endpoints: \{ app: shop \}$/m)
    const two = await suggest(...nodes('n1', 'n3'), '--format', 'allow-list')
    assert.deepEqual([two.code, two.out], [2, ''])
  })

  it('prints the same as JSON', async () => {
    const { out } = await suggest(...nodes('n1'), '-o', 'json')
    const seen = {
      first: '2026-01-02T03:04:05.678Z',
      last: '2026-01-02T03:04:05.678Z',
      endpoints: ['shop-1'],
      nodes: ['n1'],
    }
    const parsed: unknown = JSON.parse(out)
    assert.deepEqual(parsed, [
      {
        namespace: 'default',
        matchLabels: { app: 'shop' },
        asked: {
          names: ['api.example.com', 'a.cdn.example'],
          ...seen,
          flows: 4,
          last: '2026-01-02T04:00:00.000Z',
        },
        rules: [
          { names: ['api.example.com'], ports: ['443/TCP'], ...seen, flows: 7 },
          { prefixes: ['192.0.2.9/32'], ports: ['9418/TCP'], ...seen, flows: 1 },
        ],
        leftOut: [],
      },
    ])
    assert.equal((await suggest('--flows', put('none.jsonl', []), '-o', 'json')).out, '[]\n')
  })

  it('says of malformed lines where they are and what was expected', async () => {
    const rows: readonly (readonly [line: string, expected: string])[] = [
      ['{"kind":"ans', 'found no JSON, expected one JSON object a line'],
      ['[]', 'found a list, expected a JSON object'],
      ['{}', 'kind: found nothing, expected a text'],
      ['{"kind":"asked"}', 'kind: found "asked", expected one of answered, audited,'],
      [mkLine({ name: 'a.b', time: 'now' }), 'time: found "now", expected a time such as'],
      [mkLine({ name: 'a.b', count: -1 }), 'count: found a number, expected a whole number from 0'],
      [mkLine({ peer: 'a.b' }), 'peer: found "a.b", expected an address'],
      [
        mkLine({ peer: '192.0.2.1', port: 65536 }),
        'port: found a number, expected a whole number from 0 to 65535',
      ],
      [
        mkLine({ name: 'a.b', endpoint: 'x\n    - {}' }),
        'endpoint: found "x\\n    - {}", expected a text without control',
      ],
      [
        mkLine({ name: 'a.b' }).replace('["external:app=shop"]', '"x"'),
        'endpointLabels: found "x", expected a list',
      ],
    ]
    for (const [line, expected] of rows) {
      const file = put('bad.jsonl', [mkLine({ name: 'a.b' }), '\n', `${line.trimEnd()}\n`])
      await assert.rejects(suggest('--flows', file), (error: unknown) => {
        assert.ok(error instanceof InvalidInputError)
        const [fault, ...others] = error.faults
        assert.deepEqual(others, [])
        assert.deepEqual(fault?.position, { file, line: 3, column: 1 })
        assert.ok(fault.message.startsWith(expected), `${fault.message} for ${line}`)
        return true
      })
    }
    await assert.rejects(suggest('--flows', join(folder, 'nowhere')), /cannot read: ENOENT/)
    await assert.rejects(suggest('--flows', folder), /found no flows-\*\.jsonl in this folder/)
  })

  it('passes over a last line that was cut short, and says so', async () => {
    const file = put('cut.jsonl', [
      mkLine({ name: 'a.example' }),
      mkLine({ name: 'b.example' }).slice(0, 40),
    ])
    const { code, out, err } = await suggest('--flows', file)
    assert.equal(code, 0)
    assert.match(out, /matchName: a\.example/)
    assert.match(err, /cut\.jsonl:2: the last line is cut short and passed over/)
  })

  it('says when flows were not recorded, and which endpoints no policy can select', async () => {
    const lost = '{"time":"2026-01-02T03:04:05.678Z","kind":"lost","endpoint":null,"count":12}\n'
    const bare = mkLine({ name: 'a.example' }).replace('["external:app=shop"]', '[]')
    const { out, err } = await suggest('--flows', put('bare.jsonl', [lost, bare]))
    assert.equal(out, '')
    assert.match(err, /12 flows were not recorded: something may be missing/)
    assert.match(err, /no policy can select endpoints without labels: shop-1/)
  })

  it('reads the folder of a daemon, oldest file first', async () => {
    const state = mkdtempSync(join(tmpdir(), 'suggest-state-'))
    writeFileSync(join(state, 'flows-0000000002.jsonl'), NODE_2.join(''))
    writeFileSync(join(state, 'flows-0000000001.jsonl'), NODE_1.join(''))
    const { out } = await suggest('--flows', state)
    assert.equal(out, (await suggest(...nodes('n1', 'n2'))).out)
    rmSync(state, { recursive: true })
  })

  it('refuses wrong use, and says when there is no daemon to ask', async () => {
    for (const words of [
      ['--collapse', '1'],
      ['--format', 'xml'],
      ['--labels', '='],
      ['--labels', ','],
    ]) {
      assert.equal((await suggest(...nodes('n1'), ...words)).code, 2, words.join(' '))
    }
    await assert.rejects(suggest('--socket', join(folder, 'none.sock')), UnavailableError)
  })

  it('for random flows gives policies that the loader takes, after which nothing is missing', async () => {
    const name = fc.constantFrom(
      'a.x.example',
      'b.x.example',
      'c.x.example',
      'd.example',
      'e.example',
      '8.8.example',
    )
    const app = fc.constantFrom('shop', 'true', "it's", 'a b')
    const asked = fc.record({ name, app })
    // Who an address is does not change within a recording.
    const peer = fc.constantFrom(
      { peer: '192.0.2.1', labels: WORLD },
      { peer: '2001:db8::1', labels: ['reserved:world', 'reserved:world-ipv6'] },
      { peer: '10.0.9.1', labels: ['k8s:app=db'] },
      { peer: '10.0.9.2', labels: ['external:vm=1', 'k8s:io.kubernetes.pod.namespace=prod'] },
    )
    const reached = fc
      .record({
        peer,
        app,
        port: fc.constantFrom(80, 443, 8443),
        protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
        names: fc.uniqueArray(name, { maxLength: 3 }),
      })
      .map(({ peer: who, ...rest }) => ({ ...rest, ...who }))
    const collapse = fc.constantFrom('2', '3', '64')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(asked, reached), { maxLength: 12 }),
        collapse,
        async (flows, from) => {
          const file = put('random.jsonl', flows.map(mkLine))
          const args = ['--flows', file, '--collapse', from]
          const { out } = await suggest(...args)
          assert.deepEqual(loadPolicies(out, 'random.yaml').faults, [])
          if (out === '') return
          const policy = put('random.yaml', [out])
          assert.equal(
            (await suggest(...args, '--policies', policy)).out,
            '',
            readFileSync(policy, 'utf8'),
          )
        },
      ),
      { numRuns: 25 },
    )
  })
})
