// `namegate up --cgroup` on the real kernel: it restricts the processes of the cgroup, and leaves the queries of all other programs alone.

import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { cgroupMount } from '../../../src/native/cgroup-mount.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { ALLOWED, OTHER, UpLab, type UpRun } from '../../support/labs/up-lab.ts'
import { until } from '../../support/peers/client.ts'

const mount = cgroupMount()
const skip = canUseNamegate() ?? (mount === undefined ? 'no cgroup2 is mounted' : false)
const GET = 'curl -s -o /dev/null -w "%{http_code}"'
const ASK = `dig @${DNS_4} +tries=1 +time=2`

describe('namegate up --cgroup', { skip }, () => {
  const cgroup = join(mount ?? '', `ng-up-${process.pid}`)
  let lab: UpLab
  let run: UpRun
  let line: string

  async function outside(command: string): Promise<string> {
    return (await run.run('sh', '-c', `exec ${command}`)).stdout
  }

  async function inside(command: string): Promise<string> {
    return (await run.run('sh', '-c', `echo $$ > ${cgroup}/cgroup.procs && exec ${command}`)).stdout
  }

  before(async () => {
    lab = new UpLab(1)
    await lab.serve()
    mkdirSync(cgroup)
    run = lab.up(DNS_4, '--cgroup', cgroup, '--allow', ALLOWED)
    line = await run.protects()
  })
  after(async () => {
    await lab.close()
    rmdirSync(cgroup)
  })

  it('restricts the processes of the cgroup only', async () => {
    assert.match(line, /\(redirect, ebpf\)/)
    assert.equal(await inside(`${GET} -m 10 http://${ALLOWED}/`), '200')
    assert.equal(await inside(`${GET} -m 1 http://${OTHER}/`), '000')
    assert.equal(await outside(`${GET} -m 10 http://${OTHER}/`), '200')
  })

  it('prints a command that reaches the allowed name as a process of the cgroup', async () => {
    const [, command = ''] = /^ {2}try it: +(.*)$/m.exec(run.process.stdout) ?? []
    // The lab has no HTTPS.
    const plain = command.replace('https:', 'http:')
    const { code, stdout, stderr } = await run.run('sh', '-c', plain)
    assert.equal(code, 0, `${plain}: ${stderr}`)
    assert.match(stdout, /^HTTP\/1\.1 200/)
  })

  for (const [over, from] of [
    ['+notcp', '-b 0.0.0.0#40053'],
    ['+tcp', ''],
  ] as const) {
    it(`gives a port back that a process of the cgroup asked from: ${over}`, async () => {
      const ask = `${ASK} ${over} ${from}`
      assert.match(await inside(`${ask} ${ALLOWED}`), /status: NOERROR/)
      assert.match(await inside(`${ask} ${OTHER}`), /status: REFUSED/)
      assert.match(await outside(`${ask} ${OTHER}`), /status: NOERROR/)
      assert.match(await inside(`${ask} ${OTHER}`), /status: REFUSED/)
    })
  }

  it('redirects a connection from a port of which another program closed one', async () => {
    const ask = `${ASK} +tcp -b 0.0.0.0#40054`
    assert.match(await outside(`${ask} ${OTHER}`), /status: NOERROR/)
    assert.match(await inside(`${ask} ${ALLOWED}`), /status: NOERROR/)
  })

  it('brings the daemon the last packet of a connection, which has no socket', async () => {
    const { stdout } = await run.command('/', 'status', '-o', 'json')
    const pid = /"pid": (\d+)/.exec(stdout)?.[1] ?? ''
    const closesFirst = [
      `exec 3<>/dev/tcp/${DNS_4}/53`,
      `sleep 0.2 && kill -STOP ${pid} && exec 3>&-`,
      `sleep 0.5 && kill -CONT ${pid}`,
    ]
    assert.equal(await inside(`bash -c '${closesFirst.join(' && ')}'`), '')
    await until('the connection is closed on both sides', async () => {
      return (await outside('ss -Htan state close-wait state last-ack')) === ''
    })
  })

  it('follows a cgroup that is made again', async () => {
    rmdirSync(cgroup)
    mkdirSync(cgroup)
    // The new cgroup is open until the daemon has seen it.
    await until('the other name is refused', async () => {
      return (await inside(`${ASK} ${OTHER}`)).includes('status: REFUSED')
    })
    assert.equal(await inside(`${GET} -m 10 http://${ALLOWED}/`), '200')
  })

  it('answers no other machine', async () => {
    const port = /port: (\d+), mode: redirect/.exec(run.process.stdout)?.[1] ?? ''
    const { host, gateway4, gateway6 } = lab.pod(0)
    for (const at of [gateway4, gateway6]) {
      for (const over of ['+notcp', '+tcp']) {
        const args = [`@${at}`, '-p', port, over, '+tries=1', '+time=1', OTHER]
        const { stdout } = await host.run('dig', args)
        assert.doesNotMatch(stdout, /status:/, `another machine asks ${at} ${over}`)
      }
    }
  })

  it('leaves no rule at its end', async () => {
    assert.equal((await run.end('SIGTERM'))?.code, 0)
    assert.equal((await lab.node.run('nft', ['list', 'ruleset'])).stdout, '')
  })
})
