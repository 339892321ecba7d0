// `namegate exec` as root switches forwarding on, and the last run restores the former setting, whichever run began, also when an earlier
// run was killed.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'
import { outputIn } from '../../support/labs/intercept-lab.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { until } from '../../support/peers/client.ts'

const skip = canUseExecLab() ?? false
const KEYS = ['ipv4/ip_forward', 'ipv6/conf/all/forwarding'] as const

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(() => {
    lab = ExecLab.bare()
    // A killed run can leave this.
    outputIn(lab.caller, 'ip', 'link', 'add', 'ngx-old', 'type', 'veth')
    // A new network namespace copies the setting of the first one.
    outputIn(lab.caller, 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=0')
    outputIn(lab.caller, 'sysctl', '-q', '-w', 'net.ipv6.conf.all.forwarding=0')
  })

  after(async () => {
    await lab.close()
  })

  it('restores forwarding after the last of several runs', async () => {
    assert.deepEqual(forwarding(), ['0', '0'])
    const first = await running()
    const second = await running()
    assert.deepEqual(forwarding(), ['1', '1'])
    await ended(first)
    assert.deepEqual(forwarding(), ['1', '1'], 'the second still runs')
    assert.equal(first.stderr, '', '--quiet prints nothing')
    const third = await running()
    await ended(second)
    assert.deepEqual(forwarding(), ['1', '1'], 'the third still runs')
    third.kill('SIGKILL')
    await third.ended(20_000)
    // After the killed run has ended, its helper restores the setting.
    await until('forwarding is off', () => forwarding().join() === '0,0', 10_000, 10)
  })

  it('says which settings it changed, why, and until when', async () => {
    const said = await running([])
    const line =
      /^namegate: changed until the last run ends, so that this host forwards the command's packets: net\.ipv4\.ip_forward, .*net\.ipv6\.conf\.all\.forwarding.*$/m
    assert.match(said.stderr, line)
    await ended(said)
  })

  it("restores forwarding of single interfaces, which the kernel switches with the host's setting", async () => {
    const single = ['ipv4', 'ipv6'].map(
      (family) => `/proc/sys/net/${family}/conf/ngx-old/forwarding`,
    )
    const found = (): readonly string[] =>
      single.map((path) => outputIn(lab.caller, 'cat', path).trim())
    for (const path of single) outputIn(lab.caller, 'sh', '-c', `echo 1 >${path}`)
    assert.deepEqual(
      [forwarding(), found()],
      [
        ['0', '0'],
        ['1', '1'],
      ],
    )
    const first = await running()
    const second = await running()
    await ended(first)
    await ended(second)
    assert.deepEqual(
      [forwarding(), found()],
      [
        ['0', '0'],
        ['1', '1'],
      ],
    )
  })

  it('leaves forwarding on if it was on before', async () => {
    outputIn(lab.caller, 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=1')
    await ended(await running())
    assert.deepEqual(forwarding(), ['1', '0'])
  })

  function forwarding(): readonly string[] {
    return KEYS.map((key) => outputIn(lab.caller, 'cat', `/proc/sys/net/${key}`).trim())
  }

  async function running(options: readonly string[] = ['--quiet']): Promise<LabProcess> {
    const args = [...options, '--', 'sh', '-c', 'echo up; sleep 300']
    const run = lab.start({ who: 'root', args })
    await run.until(() => (run.stdout.includes('up') ? true : undefined), 'up', 30_000)
    return run
  }

  async function ended(run: LabProcess): Promise<void> {
    run.kill('SIGTERM')
    await run.ended(20_000)
  }
})
