// The walk of docs/rollout.md on three nodes. A mixed workload runs under audit, a policy is suggested from the flows of all three nodes,
// the workload runs again under it without an audit event, and then the policy is enforced. The test reads the commands from the document
// and runs them unchanged.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFields, textOf, type Fields } from '../../../src/cli/fields.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { http } from '../../support/nodes/admin.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { ThreeNodes, type Node } from '../../support/labs/three-nodes.ts'

const skip = canUseNamegate() ?? false

const ZONES = {
  names: {
    'api.shop.test': ['198.18.1.1', '2001:db8:80::1'],
    'time.shop.test': ['198.18.1.2', '2001:db8:80::2'],
    'img1.cdn.shop.test': ['198.18.2.1'],
    'img2.cdn.shop.test': ['198.18.2.2'],
    'img3.cdn.shop.test': ['198.18.2.3'],
    'img4.cdn.shop.test': ['198.18.2.4'],
    'www.alias.test': ['-> edge.provider.test'],
    'edge.provider.test': ['198.18.3.1', '2001:db8:80::3'],
    'other.test': ['198.18.66.6'],
  },
}
const PORTS = [22, 80, 443, 9418]

/**
 * The workload of a pod. `NAME TYPE PROTOCOL PORT` asks the name and connects to the answer. An address in place of the name is only
 * connected.
 */
const WORKLOAD: readonly (readonly string[])[] = [
  [
    'api.shop.test A tcp 443',
    'api.shop.test AAAA tcp 443',
    'time.shop.test A udp 123',
    'gone.shop.test A tcp 80',
  ],
  [
    'img1.cdn.shop.test A tcp 443',
    'img2.cdn.shop.test A tcp 443',
    'img3.cdn.shop.test A tcp 443',
    'img1.cdn.shop.test A tcp 80',
    'time.shop.test AAAA udp 123',
  ],
  [
    'www.alias.test A tcp 443',
    'www.alias.test AAAA tcp 443',
    'api.shop.test A tcp 443',
    '198.18.77.7 - tcp 9418',
    '2001:db8:80::77 - udp 514',
  ],
]
/** Connections of a pass, by node. */
const CONNECTIONS = [3, 5, 5]

/** Prints a line for each TCP connection that failed, and for each refused question. */
const DRIVER = `
seconds=$2
to() {
  case $2 in
    udp) echo x > "/dev/udp/$1/$3" ;;
    tcp) timeout "$seconds" bash -c "exec 3<>/dev/tcp/$1/$3" 2>/dev/null || echo "no connection $1 $3" ;;
  esac
}
while read -r name type protocol port; do
  if [ "$type" = - ]; then to "$name" "$protocol" "$port"; continue; fi
  answer=$(dig +tries=2 +time=3 +noall +comments +answer "@$1" "$name" "$type")
  case $answer in *'status: NOERROR'*|*'status: NXDOMAIN'*) ;; *) echo "no answer $name" ;; esac
  for address in $(printf '%s\\n' "$answer" | awk -v t="$type" '$4 == t { print $5 }'); do
    to "$address" "$protocol" "$port"
  done
done`

const BLOCKS = [...readFileSync('docs/rollout.md', 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)].map(
  ([, script = '']) => script,
)
const [AUDIT, LOOK, SUGGEST, REVIEW, PUT, MISSING, AGAIN, ENFORCE_ONE, ENFORCE_ALL, ...MORE] =
  BLOCKS

describe('rollout', { skip }, () => {
  let lab: ThreeNodes

  before(async () => {
    lab = new ThreeNodes({
      zones: ZONES,
      ports: PORTS,
      app: 'shop',
      config: 'default-egress: audit',
    })
    await lab.start()
  })
  after(async () => await lab.close())

  /** Runs a block of the document. Every command must succeed. */
  async function say(block: string | undefined): Promise<string> {
    const { code, stdout, stderr } = await lab.sh(`set -e\n${block ?? 'false'}`)
    assert.equal(code, 0, `${block}${stdout}${stderr}`)
    return stdout
  }

  async function work(
    { pod, resolver }: Node,
    steps: readonly string[],
    seconds = 10,
  ): Promise<string> {
    const input = steps.map((step) => `${step}\n`).join('')
    const script = `${DRIVER} <<'END'\n${input}END\n`
    return (
      await pod.run('bash', ['-c', script, 'work', resolver, String(seconds)], { limitMs: 30_000 })
    ).stdout
  }

  /** The failures on each node. */
  async function workload(): Promise<readonly string[]> {
    return await Promise.all(lab.nodes.map(async (node, i) => await work(node, WORKLOAD[i] ?? [])))
  }

  /** Lines of `/v1/flows...`, from the API because the test looks often. */
  async function flows({ namegate }: Node, path: string): Promise<readonly Fields[]> {
    const { text } = await http({ socketPath: join(namegate.folder, 'admin.sock') }, path)
    const lines = text.split('\n').filter((line) => line !== '')
    return lines.map((line): unknown => JSON.parse(line)).filter(isFields)
  }

  /** The kernel's count of packets that audit let pass, or that were dropped. */
  async function counts(name: 'verdict_audit' | 'drop_policy'): Promise<readonly number[]> {
    return await Promise.all(lab.nodes.map(async ({ namegate }) => await namegate.stat(name)))
  }

  async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    for (const deadline = performance.now() + 15_000; !(await isSo()); await sleep(50)) {
      assert.ok(performance.now() < deadline, `expected ${what}`)
    }
  }

  it('records a mixed workload under audit, and lets all of it pass', async () => {
    assert.deepEqual(MORE, [], 'the test runs every block of the document')
    await say(AUDIT)
    assert.deepEqual(await workload(), ['', '', ''])
    await Promise.all(
      lab.nodes.map(async (node, i) => {
        await until(`all connections of node ${node.number} in the record`, async () => {
          const kept = await flows(node, '/v1/flows/kept')
          return kept.filter(({ kind }) => kind === 'audit').length >= (CONNECTIONS[i] ?? 0)
        })
      }),
    )
    const told = await say(LOOK)
    assert.match(told, /TCP \[2001:db8:80::1\]:443 \(api\.shop\.test\) would be dropped/)
  })

  it('suggests a policy from the flows of three nodes, under which nothing is audited', async () => {
    await say(SUGGEST)
    const text = readFileSync(join(lab.folder, 'shop.yaml'), 'utf8')
    assert.deepEqual(loadPolicies(text, 'shop.yaml').faults, [])
    assert.match(text, /# \*\.cdn\.shop\.test stands for 3 names\./)
    assert.match(text, /198\.18\.77\.7\/32/)
    assert.match(text, /shop-1, shop-2, shop-3/)
    assert.match(await say(REVIEW), /verdict: +allow/)
    await say(PUT)
    await Promise.all(
      lab.nodes.map(async ({ namegate, number }) => {
        const socketPath = join(namegate.folder, 'admin.sock')
        await until(`the policy in force on node ${number}`, async () => {
          return (await http({ socketPath }, '/v1/endpoints')).text.includes('suggested-shop')
        })
        await http({ socketPath }, '/v1/status?realized=wanted&timeout=10000')
      }),
    )
    const before = await counts('verdict_audit')
    assert.ok(
      before.every((packets) => packets > 0),
      'the first pass was audited on every node',
    )
    const last = await Promise.all(
      lab.nodes.map(async (node) => (await flows(node, '/v1/flows?last=1'))[0]),
    )
    assert.deepEqual(await workload(), ['', '', ''])
    assert.deepEqual(
      await counts('verdict_audit'),
      before,
      'no packet was audited in the second pass',
    )
    const since = await Promise.all(
      lab.nodes.map(async (node, i) => {
        const audited = await flows(node, '/v1/flows?verdict=audit')
        return audited.filter(({ number }) => Number(number) > Number(last[i]?.['number']))
      }),
    )
    assert.deepEqual(since, [[], [], []], 'no audit event in the second pass')
    await say(MISSING)
    assert.equal(await say(AGAIN), '', 'nothing to suggest')
  })

  it('enforces, denies nothing of the workload, and denies everything else', async () => {
    await say(ENFORCE_ONE)
    assert.match(await say(ENFORCE_ALL), /mode: +enforce/)
    const before = await counts('drop_policy')
    assert.deepEqual(await workload(), ['', '', ''])
    assert.deepEqual(await counts('drop_policy'), before, 'no packet was dropped')
    for (const node of lab.nodes) assert.deepEqual(await flows(node, '/v1/flows?verdict=deny'), [])
    const [one] = lab.nodes
    assert.ok(one !== undefined)
    const [name, pattern, address, port] = await Promise.all([
      work(one, ['other.test A tcp 443']),
      work(one, ['img4.cdn.shop.test A tcp 443']),
      work(one, ['198.18.66.6 - tcp 443'], 1),
      work(one, ['198.18.1.1 - tcp 22'], 1),
    ])
    assert.equal(name, 'no answer other.test\n')
    assert.equal(pattern, '', 'a sibling, which the pattern allows')
    assert.equal(address, 'no connection 198.18.66.6 443\n')
    assert.equal(port, 'no connection 198.18.1.1 22\n')
    await until('the denied in the flows', async () => {
      const denied = await flows(one, '/v1/flows?verdict=deny')
      const what = new Set(
        denied.map(({ name: asked, peer, port: at }) => `${textOf(asked ?? peer)} ${textOf(at)}`),
      )
      return ['other.test -', '198.18.66.6 443', '198.18.1.1 22'].every((each) => what.has(each))
    })
  })
})
