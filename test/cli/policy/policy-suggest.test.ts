import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadAllowList } from '../../../src/policy/load/allow-list.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { FlowFolder, mkLine, suggest } from '../../support/nodes/flow-lines.ts'

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
  let flows: FlowFolder
  before(() => {
    flows = new FlowFolder()
  })
  after(() => flows.remove())

  it('makes of the flows of three nodes the smallest policy, and says what each rule rests on', async () => {
    const { code, out, err } = await suggest(
      ...flows.nodes('n1', 'n2', 'n3'),
      '--labels',
      'app=shop',
    )
    assert.equal(out, SUGGESTED)
    assert.equal(code, 0)
    assert.equal(
      err,
      'namegate: 2 flows that policy denied are not suggested: evil.example, 192.0.2.66 443/TCP; to suggest them, record them in audit (namegate audit on --selector app=shop)\n' +
        'namegate: 1 line is about other endpoints\n' +
        'namegate: a.cdn.example: asked, but the flows have no connection to them, so the suggestion lets them be asked only: connections are recorded only in audit, and only if no policy allows them\n',
    )
    assert.deepEqual(loadPolicies(out, 'suggested.yaml').faults, [])
  })

  it('gives the same text whatever the order of the files', async () => {
    const one = await suggest(...flows.nodes('n1', 'n2', 'n3'))
    for (const order of [
      ['n3', 'n1', 'n2'],
      ['n2', 'n3', 'n1'],
    ]) {
      assert.equal((await suggest(...flows.nodes(...order))).out, one.out)
    }
  })

  it('makes a policy for each set of labels, and none twice by one name', async () => {
    const { out } = await suggest(...flows.nodes('n1', 'n2', 'n3'))
    const { policies, faults } = loadPolicies(out, 'suggested.yaml')
    assert.deepEqual(faults, [])
    assert.deepEqual(
      policies.map(({ name }) => name),
      ['suggested-batch', 'suggested-shop'],
    )
  })

  it('proposes nothing when it is run on its own result', async () => {
    for (const more of [[], ['--collapse', '3'], ['--labels', 'app=shop']]) {
      const { out } = await suggest(...flows.nodes('n1', 'n2', 'n3'), ...more)
      const file = flows.put('suggested.yaml', [out])
      const again = await suggest(...flows.nodes('n1', 'n2', 'n3'), ...more, '--policies', file)
      assert.equal(again.out, '')
      assert.match(again.err, /nothing to suggest/)
      assert.equal(again.code, 0)
    }
  })

  it('adds only what the policies that are there do not allow', async () => {
    const file = flows.put('some.yaml', [
      SUGGESTED.replace("            - { port: '80', protocol: TCP }\n", '').replace(
        '              - matchName: time.example\n',
        '',
      ),
    ])
    const { out } = await suggest(
      ...flows.nodes('n1', 'n2', 'n3'),
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

  it('never suggests a connection to a DNS server, which is a way around names', async () => {
    const file = flows.put('dns.jsonl', [
      mkLine({ peer: '192.0.2.53', protocol: 'UDP', port: 53 }),
      mkLine({ peer: '192.0.2.53', port: 53, names: ['dns.example'] }),
      mkLine({ peer: '10.0.0.53', protocol: 'UDP', port: 53, labels: ['k8s:app=dns'] }),
    ])
    for (const more of [[], ['--format', 'allow-list']]) {
      const { out, err } = await suggest('--flows', file, ...more)
      assert.equal(out, '')
      assert.match(err, /nothing to suggest/)
    }
  })

  it('leaves out what a deny rule denies, which no other rule can allow', async () => {
    const file = flows.put('deny.yaml', [
      'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: deny }\nspec:\n  endpointSelector: { matchLabels: { app: shop } }\n  egressDeny: [{ toCIDR: [192.0.2.9/32] }]\n',
    ])
    const { out } = await suggest(...flows.nodes('n1'), '--policies', file)
    assert.match(out, /^# Left out, because a rule denies it: 192\.0\.2\.9:9418\/TCP/m)
    assert.doesNotMatch(out, /toCIDR/)
  })

  it('makes patterns of siblings from the number of --collapse on, and reports the number of their names', async () => {
    const { out } = await suggest(
      ...flows.nodes('n1', 'n2', 'n3'),
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
      (await suggest('--flows', flows.put('many.jsonl', many))).out,
      /\*\.many\.example stands for 64 names/,
    )
    const fewer = await suggest('--flows', flows.put('many.jsonl', many.slice(1)))
    assert.doesNotMatch(fewer.out, /\*/)
  })

  it('makes a pattern at the port that siblings share, and leaves the others what else they were reached at', async () => {
    const reached = (label: string, port: number): string =>
      mkLine({ peer: '192.0.2.1', port, names: [`${label}.cdn.example`] })
    const file = flows.put('ports.jsonl', [
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
      ...flows.nodes('n1', 'n2', 'n3'),
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
      'a.cdn.example:53',
      'c.cdn.example:80/tcp',
      'c.cdn.example:443/tcp',
      'time.example:123/udp',
      'api.example.com:443/tcp',
      'b.cdn.example:443/tcp',
      '192.0.2.9/32:9418/tcp',
    ])
    assert.match(out, /^# Asked, and the flows have no connection to it: .*\na\.cdn\.example:53$/m)
    assert.match(
      out,
      /^# Left out, because a list has no labels: default app=db 5432\/tcp \(1 flow .*\)$/m,
    )
    assert.match(out, /^# For policies\.allow-list-endpoints: \{ app: shop \}$/m)
    const two = await suggest(...flows.nodes('n1', 'n3'), '--format', 'allow-list')
    assert.deepEqual([two.code, two.out], [2, ''])
  })

  it('prints the same as JSON', async () => {
    const { out } = await suggest(...flows.nodes('n1'), '-o', 'json')
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
    assert.equal((await suggest('--flows', flows.put('none.jsonl', []), '-o', 'json')).out, '[]\n')
  })
})
