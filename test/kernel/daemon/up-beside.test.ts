// `namegate up` beside another daemon that already intercepts: the printed command adds the workload to that daemon, which then restricts it.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { cgroupMount } from '../../../src/native/cgroup-mount.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { ALLOWED, OTHER, UpLab, type UpRun } from '../../support/labs/up-lab.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'
import { until } from '../../support/peers/client.ts'

const mount = cgroupMount()
const skip = canUseNamegate() ?? (mount === undefined ? 'no cgroup2 is mounted' : false)
const ADD = /^ +(echo '.*- \{ name: .*)$/m

describe('namegate up beside another daemon', { skip }, () => {
  const cgroups = ['a', 'b'].map((each) => join(mount ?? '', `ng-beside-${each}-${process.pid}`))
  const [first = '', second = ''] = cgroups
  let lab: UpLab

  async function add(run: UpRun, stderr: string): Promise<void> {
    const [, command = ''] = ADD.exec(stderr) ?? []
    const { code, stderr: fault } = await run.run('sh', '-c', command)
    assert.equal(code, 0, `${stderr}: ${fault}`)
  }

  /** The status code that a process of a cgroup gets. */
  async function fetchIn(cgroup: string, run: UpRun, name: string): Promise<string> {
    const get = `exec curl -s -m 2 -o /dev/null -w "%{http_code}" http://${name}/`
    return (await run.run('sh', '-c', `echo $$ > ${cgroup}/cgroup.procs && ${get}`)).stdout
  }

  before(async () => {
    lab = new UpLab(2)
    await lab.serve()
    for (const cgroup of cgroups) mkdirSync(cgroup)
  })
  after(async () => {
    await lab.close()
    for (const cgroup of cgroups) rmdirSync(cgroup)
  })

  it('adds an interface to the daemon of another namespace, and prints whose query was refused', async () => {
    const { host, interface: nic } = lab.pod(1)
    const run = lab.up(DNS_4, '--netns', lab.pod(0).host.namespace, '--allow', ALLOWED)
    await run.protects()
    const refused = await lab.refused(DNS_4, '--interface', nic, '--allow', ALLOWED)
    assert.equal(refused.code, 3)
    assert.match(
      refused.stderr,
      /\(configuration \S+up-ng-\S+\/namegate\.yaml\) already intercepts/,
    )
    await add(run, refused.stderr)
    const line = new RegExp(` refused  ${nic}: other\\.test .*: echo other\\.test >> `)
    await until('up prints whose query was refused', async () => {
      const codes = [await lab.fetch(host, ALLOWED), await lab.fetch(host, OTHER, 1)]
      return codes.join() === '200,000' && line.test(run.process.stdout)
    })
    const again = await lab.refused(DNS_4, '--interface', nic, '--allow', ALLOWED)
    const inside = await lab.refused(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
    for (const { stderr } of [again, inside]) {
      assert.match(stderr, new RegExp(`protects it already: endpoint ${nic} of `))
    }
    assert.equal((await run.end())?.code, 0)
    assert.equal(await lab.fetch(host, OTHER), '200')
  })

  it('adds a cgroup to the daemon of another cgroup', async () => {
    const run = lab.up(DNS_4, '--cgroup', first, '--allow', ALLOWED)
    await run.protects()
    assert.equal(await fetchIn(second, run, OTHER), '200')
    const { stderr } = await lab.refused(DNS_4, '--cgroup', second, '--allow', ALLOWED)
    await add(run, stderr)
    // The first query can come before the rules that bring it to the daemon.
    await until('only the allowed name is reached', async () => {
      const codes = [await fetchIn(second, run, ALLOWED), await fetchIn(second, run, OTHER)]
      return codes.join() === '200,000'
    })
    assert.equal((await run.end())?.code, 0)
  })

  it('adds a cgroup to a daemon with TPROXY, after its configuration got the printed listener', async () => {
    const folder = join(lab.folder, 'kept')
    const file = join(folder, 'namegate.yaml')
    const { host } = lab.pod(0)
    const made = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED, '--write', folder)
    await made.protects()
    assert.equal((await made.end())?.code, 0)
    let run = lab.daemon(DNS_4, file)
    const isReady = async (): Promise<boolean> =>
      (await run.command('/', 'status', '--ready', '--config', file)).code === 0
    await until('the daemon is ready', isReady)
    const { stderr } = await lab.refused(DNS_4, '--cgroup', first, '--allow', ALLOWED)
    const [, listener = ''] = /^ +(- \{ port: .*\})$/m.exec(stderr) ?? []
    assert.match(listener, /mode: redirect, processes: cgroups/, stderr)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('listeners:\n', `listeners:\n  ${listener}\n`))
    await add(run, stderr)
    await run.end('SIGTERM')
    run = lab.daemon(DNS_4, file)
    await until('the daemon is ready again', isReady)
    assert.equal(await fetchIn(first, run, ALLOWED), '200')
    assert.equal(await fetchIn(first, run, OTHER), '000')
    assert.equal(await lab.fetch(host, ALLOWED), '200')
    assert.equal(await lab.fetch(host, OTHER, 1), '000')
    // One shell: the first command ends the daemon, and with it the way into its mounts.
    const ending = ['datapath detach', 'intercept down'].map(
      (each) => `${PROGRAM} ${each} --config ${file}`,
    )
    const { code, stderr: fault } = await run.run('sh', '-ec', ending.join('\n'))
    assert.equal(code, 0, fault)
  })
})
