// `namegate up` on the real kernel: one command protects a namespace or an interface and prints refusals. Other commands find its
// daemon from any folder. Its end leaves nothing.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { ALLOWED, OTHER, UpLab, type UpRun } from '../../support/labs/up-lab.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'
import { until } from '../../support/peers/client.ts'

const skip = canUseNamegate() ?? false
const STUB = '127.0.0.53'
/** Runs `up` twice on a host without /run/namegate. At the second time, the user has made the folder. */
const EMPTY_RUN = `
mkdir netns && mount --rbind /run/netns netns && mount -t tmpfs none /run && mkdir /run/netns && mount --rbind netns /run/netns
for made in up user; do
  [ $made = up ] || mkdir /run/namegate
  $NG up --netns $BOX --upstream ${DNS_4} --allow ${ALLOWED} > $made.log 2>&1 & up=$!
  until grep -qs 'is protected' $made.log || ! kill -0 $up; do sleep 0.1; done
  kill -INT $up; wait $up || cat $made.log >&2
  [ -e /run/namegate ] && echo $made: left || echo $made: gone
done
`

describe('namegate up', { skip }, () => {
  let lab: UpLab
  let untouched: readonly string[]

  /** What `up` changes, on the node and in the namespaces. */
  async function look(): Promise<readonly string[]> {
    const hosts = [lab.node, ...lab.hosts.pods.map(({ host }) => host)]
    const rules = await Promise.all(
      hosts.flatMap((host) => [
        host.run('nft', ['list', 'ruleset']),
        host.run('ip', ['rule']),
        host.run('tc', ['filter', 'show', 'dev', 'lo', 'ingress']),
      ]),
    )
    const tc = await lab.node.run('tc', ['filter', 'show', 'dev', lab.pod(0).interface, 'ingress'])
    return [...rules, tc].map(({ stdout }) => stdout).concat(lab.pins)
  }

  async function ends(run: UpRun, signal?: NodeJS.Signals): Promise<string> {
    const output = await run.end(signal)
    assert.equal(output?.code, 0, output?.stderr)
    assert.deepEqual(await look(), untouched)
    return output.stdout
  }

  before(async () => {
    lab = new UpLab(2)
    await lab.serve()
    untouched = await look()
  })
  after(async () => await lab.close())

  it('protects a namespace from this host, prints refusals, and says when a new name is in force', async () => {
    const { host } = lab.pod(0)
    const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
    assert.match(await run.protects(), /is protected \(tproxy, ebpf\)/)
    // A line is pasted up to its end.
    for (const [command] of run.process.stdout.matchAll(
      /\S*namegate (?:flows|status) --socket.*/g,
    )) {
      const { code, stderr } = await run.run('sh', '-c', command)
      assert.equal(code, 0, `${command}: ${stderr}`)
    }
    assert.match(run.process.stdout, / echo NAME >> \S+\/up\.allow$/m)
    assert.match(run.process.stdout, /namegate flows --socket [^]*namegate status --socket /)
    assert.ok(
      run.process.stdout.includes(`ip netns exec ${host.namespace} curl -sSI https://${ALLOWED}\n`),
    )
    assert.match(run.process.stdout, /namegate page --socket \S+admin\.sock\n/)
    const [, show = ''] = /`(\S*namegate intercept show [^`]+)`/.exec(run.process.stdout) ?? []
    const shown = await run.run('sh', '-c', show)
    assert.match(shown.stdout, /^# tproxy .*: in force/, shown.stderr)
    assert.equal(await lab.fetch(host, ALLOWED), '200')
    assert.equal(await lab.fetch(host, OTHER, 1), '000')
    assert.equal(await lab.fetch(host, '198.18.40.9', 1), '000')
    assert.equal(await lab.fetch(lab.pod(1).host, OTHER), '200', 'another namespace is unchanged')
    await run.process.untilOutput(/refused  other\.test .*: echo other\.test >> \S+\/up\.allow$/m)
    await run.process.untilOutput(
      /refused  198\.18\.40\.9:80\/tcp .*: echo 198\.18\.40\.9:80\/tcp >> \S+\/up\.allow$/m,
    )
    // The clone has a configuration of its own, whose daemon does not run.
    for (const cwd of ['/', resolve('.')]) {
      const { code, stdout, stderr } = await run.command(cwd, 'status', '--ready')
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^datapath: +ebpf/m)
    }
    assert.equal(await lab.fetch(host, '169.254.169.254', 1), '000')
    await run.process.untilOutput(
      /refused  169\.254\.169\.254:80\/tcp +guarded, so no name opens it; .*: echo 169\.254\.169\.254:80\/tcp >> \S+$/m,
    )
    const again = await run.run(resolve('bin/namegate'), 'up', '--netns', host.namespace, '--audit')
    assert.equal(again.code, 3)
    assert.match(again.stderr, /A daemon already protects/)
    assert.doesNotMatch(again.stderr, /nsenter/, 'TPROXY rules are on the host')
    assert.match(again.stderr, /To allow more: echo NAME >> \S+\/policies\/up\.allow\n/)
    const [, command = ''] = /: (echo other\.test >> \S+)$/m.exec(run.process.stdout) ?? []
    await run.run('sh', '-c', command)
    await run.process.untilOutput(/^\d\d:\d\d:\d\d now in force: other\.test$/m)
    const counted = /again +other\.test [^]*now in force: other\.test\n/
    assert.match(run.process.stdout, counted, 'refusals from before are counted before')
    assert.equal(await lab.fetch(host, OTHER, 2), '200')
    await run.run('sed', '-i', `/^${ALLOWED}$/d`, command.replace(/.* /, ''))
    await run.process.untilOutput(/^\S+ no longer in force: www\.shop\.test$/m)
    await ends(run)
    assert.equal(await lab.fetch(host, '198.18.40.9'), '200', 'nothing is enforced after the end')
  })

  it('runs inside a namespace whose programs ask a server on loopback, and keeps what --write saves', async () => {
    const { host } = lab.pod(1)
    const folder = join(lab.folder, 'kept')
    const args = [
      '--netns',
      host.namespace,
      '--allow',
      ALLOWED,
      '--upstream',
      DNS_4,
      '--write',
      folder,
    ]
    const run = lab.up(STUB, ...args)
    assert.match(await run.protects(), /\(redirect, nftables, inside the namespace\)/)
    assert.equal(await lab.fetch(host, ALLOWED), '200')
    assert.equal(await lab.fetch(host, OTHER, 1), '000')
    const shown = await run.command('/', 'intercept', 'show', '--config', `${folder}/namegate.yaml`)
    assert.match(shown.stdout, /^# .*in force \(.*\); it runs in another network namespace$/m)
    assert.match(await ends(run), /the configuration stays.*run --config .*kept\/namegate\.yaml/)
    assert.deepEqual(readdirSync(folder).sort(), [
      'endpoints.yaml',
      'namegate.yaml',
      'policies',
      'state',
    ])
    const again = await lab.refused(STUB, ...args)
    assert.equal(again.code, 3)
    assert.match(again.stderr, /kept\/namegate\.yaml exists: give --force/)
  })

  it('removes /run/namegate at its end, if it made the folder', async () => {
    const { namespace } = lab.pod(1).host
    const { stdout, stderr } = await lab.node.run('unshare', ['--mount', 'bash', '-c', EMPTY_RUN], {
      cwd: lab.folder,
      env: { NO_COLOR: '1', NG: PROGRAM, BOX: namespace },
      limitMs: 90_000,
    })
    assert.equal(stdout, 'up: gone\nuser: left\n', stderr)
    assert.deepEqual(await look(), untouched)
  })

  it('refuses folders: for --write one that the kernel does not make, and its own; for --allow-file any', async () => {
    const { namespace } = lab.pod(1).host
    const target = ['--netns', namespace, '--allow', ALLOWED]
    const { code, stderr } = await lab.refused(DNS_4, ...target, '--write', '/proc/no-such/folder')
    assert.equal(code, 3)
    assert.match(stderr, /Cannot write the configuration: .*'\/proc\/no-such': see --write DIR/)
    const list = await lab.refused(DNS_4, '--netns', namespace, '--allow-file', '/etc')
    assert.match(list.stderr, /--allow-file "\/etc" is a folder: write --policy \/etc, which/)
    const own = `/run/namegate/up-${namespace}`
    for (const folder of [own, `${own}/saved`]) {
      const refused = await lab.refused(DNS_4, ...target, '--write', folder)
      assert.equal(refused.code, 2, refused.stderr)
      assert.match(refused.stderr, /up removes this folder at its end, so give another/)
    }
  })

  it('observes the workloads behind an interface with --audit, and refuses nothing', async () => {
    const { host, interface: name } = lab.pod(0)
    const run = lab.up(DNS_4, '--interface', name, '--audit', '--allow', `${ALLOWED}:80`)
    assert.match(await run.protects(), /is audited/)
    const tries = `ip netns exec ${host.namespace} curl -sSI http://${ALLOWED}`
    assert.ok(run.process.stdout.includes(`  try it:      ${tries}\n`), run.process.stdout)
    assert.equal(await lab.fetch(host, OTHER), '200')
    await run.process.untilOutput(
      /would be refused \(audit\)  other\.test .*: echo other\.test >> \S+$/m,
    )
    assert.doesNotMatch(run.process.stderr, /mode changed/, 'the user asked for audit')
    assert.equal((await run.command('/', 'audit', 'off', '--node')).code, 0)
    assert.equal(await lab.fetch(host, OTHER, 1), '000')
    await run.process.untilOutput(/ refused  other\.test .*: echo other\.test >> \S+$/m)
    assert.match(run.process.stderr, /INFO: mode changed \{"mode":"enforce"\}/)
    assert.equal((await run.command('/', 'audit', 'on', '--node')).code, 0)
    assert.equal(await lab.fetch(host, '198.18.40.9'), '200')
    await run.process.untilOutput(/would be refused \(audit\)  198\.18\.40\.9:80\/tcp /)
    const { stdout } = await run.command('/', 'status')
    assert.match(stdout, /^audit: +on: \d+ queries and \d+ packets? let pass since the start \(/m)
    const [, endpoint = ''] = /- name: (\S+)/.exec(run.process.stdout) ?? []
    assert.equal((await run.command('/', 'audit', 'on', '--endpoint', endpoint)).code, 0)
    await until('up reports the setting', () =>
      /INFO: audit set on \{"endpoints":\["/.test(run.process.stderr),
    )
    await ends(run, 'SIGHUP')
  })

  it('keeps the workload closed when its daemon is killed, and continues when the command runs again', async () => {
    const { host } = lab.pod(1)
    for (const resolver of [DNS_4, STUB]) {
      const args = ['--netns', host.namespace, '--upstream', DNS_4, '--allow', ALLOWED]
      const run = lab.up(resolver, ...args)
      await run.protects()
      const { stdout } = await run.command('/', 'status', '-o', 'json')
      process.kill(Number(/"pid": (\d+)/.exec(stdout)?.[1]), 'SIGKILL')
      const output = await run.process.ended(90_000)
      assert.equal(output?.code, 3)
      assert.match(output.stderr, /killed\. Its rules stay in force.*Run the same command again/)
      assert.equal(
        await lab.fetch(host, '198.18.40.9', 1),
        '000',
        'an address that was never learned',
      )
      assert.equal(await lab.fetch(host, OTHER, 1), '000', 'a name that is not allowed')
      const again = lab.up(resolver, ...args)
      await again.protects()
      assert.equal(await lab.fetch(host, '198.18.40.9', 1), '000')
      await ends(again)
    }
  })

  it('ends as with Ctrl-C when the reader of its output has ended', async () => {
    const { host } = lab.pod(0)
    const refuse = async (): Promise<unknown> => await lab.fetch(host, OTHER, 1)
    const switchAudit = async (run: UpRun): Promise<unknown> =>
      await run.command('/', 'audit', 'on', '--node')
    for (const [why, end] of [
      [
        'no reader of stdout',
        async (run) => {
          run.process.stopReading('stdout')
          await refuse()
        },
      ],
      [
        'no reader of stderr',
        async (run) => {
          run.process.stopReading('stderr')
          await switchAudit(run)
        },
      ],
    ] satisfies readonly (readonly [string, (run: UpRun) => unknown])[]) {
      const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
      await run.protects()
      await end(run)
      const output = await run.process.ended(30_000)
      assert.equal(output?.code, 0, `${why}: ${run.process.stderr}`)
      assert.deepEqual(await look(), untouched, why)
      assert.deepEqual(readdirSync(lab.shared), [], why)
      assert.equal(await lab.fetch(host, OTHER), '200', why)
    }
    const early = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
    await early.process.untilOutput(/^# --- /m)
    for (const stream of ['stdout', 'stderr'] as const) early.process.stopReading(stream)
    assert.equal((await early.process.ended(30_000))?.code, 0)
    assert.deepEqual(await look(), untouched)
    assert.deepEqual(readdirSync(lab.shared), [])
  })

  it('leaves nothing when its daemon does not answer at the end', async () => {
    const run = lab.up(DNS_4, '--netns', lab.pod(0).host.namespace, '--allow', ALLOWED)
    await run.protects()
    const { stdout } = await run.command('/', 'status', '-o', 'json')
    process.kill(Number(/"pid": (\d+)/.exec(stdout)?.[1]), 'SIGSTOP')
    await ends(run)
    assert.deepEqual(readdirSync(lab.shared), [])
  })

  it('prints a remedy when the workload does not exist', async () => {
    const { namespace } = lab.pod(0).host
    for (const [args, said] of [
      [['--netns', `${namespace}x`], new RegExp(`: found ${namespace}[,\\n]`)],
      [
        ['--netns', 'no-such'],
        /No network namespace "no-such": found .*\n {2}Make it .*ip netns add no-such/,
      ],
      [
        ['--netns', '/etc/passwd'],
        /No network namespace "\/etc\/passwd": found .*\n {2}Give the path of one, such as \/proc/,
      ],
      [['--interface', 'wan0'], /leads to the internet\n {2}.*--cgroup/],
      [['--cgroup', 'no-such.slice'], /does not exist\n {2}Make it/],
      [['--cgroup', '/'], /root cgroup cannot be an endpoint\n {2}Give another, such as --cgroup/],
    ] as const) {
      const { code, stderr } = await lab.refused(DNS_4, ...args, '--audit')
      assert.equal(code, 3, stderr)
      assert.match(stderr, said)
    }
    assert.deepEqual(await look(), untouched)
  })
})
