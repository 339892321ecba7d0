// `namegate exec` as root and as an ordinary user, on the real kernel. Allowed connections work over both families. The command tries ways
// out, and each is closed. The same program with --audit, which refuses nothing, shows that the tries can succeed.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  BANK,
  BRIEF,
  CALLER_4,
  canUseExecLab,
  ExecLab,
  GUARDED,
  OTHER_DNS_4,
  OTHER_DNS_6,
  SHOP,
  UNLEARNED_4,
  UNLEARNED_6,
  type Who,
} from '../../support/labs/exec-lab.ts'
import type { Output } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false

/** Tries that only policy prevents. With --audit they succeed. */
const OPEN_WITHOUT_POLICY = [
  'other_resolver_udp',
  'other_resolver_udp6',
  'other_resolver_tcp',
  'own_resolver',
  'resolver_elsewhere',
  'dns_over_tls',
  'never_learned',
  'never_learned6',
  'never_learned_udp',
  'fragments',
  'learned_other_port',
  'learned_other_protocol',
] as const
const WAYS = 50
const ABSTRACT = `ng-exec-${process.pid}`
/** A failure shows what curl saw, and when a packet was refused. */
const CURL = 'curl --silent --verbose --max-time 8'

describe('namegate exec', { skip }, () => {
  let lab: ExecLab
  let program: string
  const runs = new Map<string, Output>()
  let hidden: string

  before(async () => {
    lab = await ExecLab.open()
    program = lab.compile('ways-out')
    hidden = join(lab.folder, 'agent.sock')
    const echo = lab.world.start(program, ['serve', '9999'])
    await echo.until(() => (echo.stdout.includes('ready') ? true : undefined), 'ready')
    const agents = lab.caller.start(process.execPath, ['-e', AGENTS, ABSTRACT, hidden])
    await agents.until(() => (agents.stdout.includes('ready') ? true : undefined), 'ready')
    const shared = ['--allow', '*.shop.test:80/tcp', '--grace', '1s', '--verbose']
    await Promise.all([
      ...(['root', 'user'] as const).map(async (who) => runs.set(who, await run(who, shared, []))),
      run('user', ['--audit', ...shared], OPEN_WITHOUT_POLICY).then((output) =>
        runs.set('audit', output),
      ),
    ])
  })

  after(async () => {
    await lab.close()
  })

  /** Runs `tries`, or all tries if it is empty. */
  async function run(
    who: Who,
    options: readonly string[],
    tries: readonly string[],
  ): Promise<Output> {
    const reach = [4, 6].map((family) => `${CURL} -${family} http://${SHOP.name}/`)
    const script = `${reach.join('; ')}; exec ${program} ${tries.join()}`
    const env = {
      OTHER_DNS: OTHER_DNS_4,
      OTHER_DNS6: OTHER_DNS_6,
      DENIED: BANK.name,
      ALLOWED: SHOP.name,
      LEARNED: SHOP.address4,
      UNLEARNED: UNLEARNED_4,
      UNLEARNED6: UNLEARNED_6,
      FORGED: '198.18.77.7',
      GUARDED,
      CALLER: CALLER_4,
      GATEWAY: who === 'user' ? '10.0.2.2' : CALLER_4,
      ABSTRACT,
      HIDDEN: `@${hidden}`,
      AGENT_SOCKET: hidden,
      GATE: String(process.pid),
      BRIEF: BRIEF.name,
      BRIEF_ADDRESS: BRIEF.address4,
    }
    return await lab.exec({ who, args: [...options, '--', 'sh', '-c', script], env })
  }

  function outputOf(name: string): Output {
    const output = runs.get(name)
    assert.ok(output !== undefined)
    return output
  }

  function waysOf(name: string): ReadonlyMap<string, string> {
    const lines = outputOf(name).stdout.split('\n')
    return new Map(
      lines.flatMap((line) => {
        const match = /^(\w+) (open|closed)(.*)$/.exec(line)
        return match === null ? [] : [[match[1] ?? '', `${match[2]}${match[3]}`] as const]
      }),
    )
  }

  for (const who of ['root', 'user'] as const) {
    it(`as ${who}: reaches an allowed name over IPv4 and IPv6`, () => {
      const { stdout, stderr } = outputOf(who)
      assert.match(stdout, new RegExp(`hello from ${SHOP.address4}:80`), stderr)
      assert.match(stdout, /hello from \[2001:db8:80::1\]:80/, stderr)
    })

    it(`as ${who}: closes every way out that the command tries`, () => {
      const ways = waysOf(who)
      assert.equal(ways.size, WAYS, outputOf(who).stderr)
      const open = [...ways].filter(([, result]) => !result.startsWith('closed'))
      assert.deepEqual(open, [])
    })

    it(`as ${who}: prints at the end what it refused and what would allow it`, () => {
      const { stderr } = outputOf(who)
      assert.match(stderr, /^www\.bank\.test +denied +\d+ +--allow www\.bank\.test$/m)
      assert.match(
        stderr,
        /^198\.18\.40\.1:8080\/tcp +refused +\d+ +.*--allow www\.shop\.test:8080\/tcp/m,
      )
      assert.match(stderr, /^198\.18\.66\.6:80\/tcp +refused +\d+ +no name was answered/m)
    })
  }

  it('with --audit: refuses nothing, so the tries that only policy prevents succeed', () => {
    const ways = waysOf('audit')
    const closed = OPEN_WITHOUT_POLICY.filter((name) => ways.get(name) !== 'open')
    assert.deepEqual(
      closed.map((name) => [name, ways.get(name)]),
      [],
    )
  })
})

/** Listens where only this host, and only processes that see its files, can connect. */
const AGENTS = `
const { createServer } = require('node:net')
const [abstract, path] = process.argv.slice(1)
createServer((socket) => socket.end()).listen('\\0' + abstract, () =>
  createServer((socket) => socket.end()).listen(path, () => {
    require('node:fs').chmodSync(path, 0o777)
    console.log('ready')
  }))
`
