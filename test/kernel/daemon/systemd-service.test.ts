// The units of deploy/systemd under a systemd that is process 1 of its own machine: when the service counts as started, what happens to
// queries during a restart, and what stays in force after a watchdog timeout, a fault and a stop.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it, type TestContext } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { SteadyLoad } from '../../support/peers/steady-load.ts'
import { canUseMachine, type SystemdMachine } from '../../support/labs/systemd-machine.ts'
import {
  ALLOWED_PORT,
  CONFIG,
  DENIED_PORT,
  POLICY_FILE,
  policyFor,
  SERVER,
  SystemdSite,
} from '../../support/labs/systemd-site.ts'
import { Probe, startEcho, unixNow } from '../../support/peers/traffic.ts'

const RESTARTS = 2
const FAULTY = 'datapth: {}\n'
/** NoNewPrivileges, and a filter for system calls. */
const RESTRICTED = /^NoNewPrivs:\t1\nSeccomp:\t2$/m
const skip = canUseNamegate() ?? (await canUseMachine()) ?? false

describe('deploy/systemd on its own machine', { skip, timeout: 280_000 }, () => {
  let site: SystemdSite
  let machine: SystemdMachine
  let load: SteadyLoad
  let probe: Probe
  before(async () => {
    load = new SteadyLoad()
    site = new SystemdSite({ mode: 'tproxy' })
    machine = site.machine
    await site.start()
    await startEcho(site.internet, ALLOWED_PORT, DENIED_PORT)
  })
  after(async () => {
    await site.close()
  })

  async function ask(name: string): Promise<string> {
    const { stdout } = await site.pod.run('dig', ['+short', '+tries=3', `@${SERVER}`, name])
    return stdout.trim()
  }

  /** A client that asks one name after the other, each once, and waits for each answer. */
  async function startAsking(...options: readonly string[]): Promise<LabProcess> {
    const dig = ['dig', `@${SERVER}`, '+short', '+tries=1', '+time=60', ...options]
    const names = '<(seq -f n%.0f.test 1000000)'
    const client = site.pod.start('bash', ['-c', `exec ${dig.join(' ')} -f ${names}`])
    await client.untilOutput(/^198/)
    return client
  }

  /** The client still gets answers, and got nothing else before. */
  async function lostNothing(client: LabProcess, t: TestContext): Promise<void> {
    const lines = (): readonly string[] => client.stdout.trim().split('\n')
    const before = lines().length
    await client.until(() => lines().length > before + 10 || undefined, 'expected answers')
    await client.stop()
    t.diagnostic(`${lines().length} queries answered`)
    assert.deepEqual(
      lines().filter((line) => !/^[\d.]+$/.test(line)),
      [],
    )
  }

  /** Waits until a name gets an address, which takes as long as policy needs to be in force. */
  async function untilTold(name: string): Promise<void> {
    const end = performance.now() + 30_000
    while ((await ask(name)) === '') assert.ok(performance.now() < end, `${name} stays refused`)
  }

  async function mainPid(): Promise<number> {
    return Number(await machine.property('namegate', 'MainPID'))
  }

  /** From now on, a connection that policy allows passes. No other connection ever passed. */
  async function isEnforced(): Promise<void> {
    const now = unixNow()
    await probe.untilConnected(ALLOWED_PORT, now, 30_000)
    await probe.untilTried(DENIED_PORT, now, 30_000)
    const passed = probe.attempts(DENIED_PORT).filter(({ connected }) => connected)
    assert.deepEqual(passed, [])
  }

  it('namegate.service is active when a server has answered, and its status text says before that it waits', async () => {
    await machine.get('systemctl', 'enable', '--now', 'namegate.socket')
    await machine.get('systemctl', 'start', '--no-block', 'namegate')
    await machine.untilProperty('namegate', 'StatusText', /^starting: .*no upstream has answered/)
    assert.equal(await machine.property('namegate', 'ActiveState'), 'activating')
    await load.serve(site.internet, SERVER)
    await machine.untilProperty('namegate', 'ActiveState', /^active$/)
    const status = await machine.untilProperty('namegate', 'StatusText', /^serves/)
    probe = await Probe.begin(site.pod, 50, await ask('www.test'), ALLOWED_PORT, DENIED_PORT)
    await isEnforced()
    assert.equal(status, 'serves 0.0.0.0:10053 (tproxy), [::]:10053 (tproxy)')
    assert.match(await machine.get('cat', `/proc/${await mainPid()}/status`), RESTRICTED)
  })

  it('systemctl restart behind namegate.socket loses no query', async (t) => {
    const client = await startAsking()
    for (let i = 0; i < RESTARTS; i++) {
      const before = await mainPid()
      await machine.get('systemctl', 'restart', 'namegate')
      assert.notEqual(await mainPid(), before)
    }
    await lostNothing(client, t)
    await isEnforced()
  })

  it('systemctl reload reads policies again', async () => {
    const before = await mainPid()
    for (const suffix of ['other', 'test']) {
      await machine.write(POLICY_FILE, policyFor(suffix))
      await machine.get('systemctl', 'reload', 'namegate')
      await untilTold(`www.${suffix}`)
    }
    assert.match(await machine.journal('namegate'), /"signal":"SIGHUP"/)
    assert.deepEqual(
      [await mainPid(), await machine.property('namegate', 'Result')],
      [before, 'success'],
    )
  })

  it('systemctl reload with take-over.conf changes the process, and loses neither queries nor connections', async (t) => {
    const dropIn = '/run/systemd/system/namegate.service.d/take-over.conf'
    await machine.write(
      dropIn,
      readFileSync('deploy/systemd/namegate.service.d/take-over.conf', 'utf8'),
    )
    await machine.get('systemctl', 'daemon-reload')
    const client = await startAsking('+tcp', '+keepopen')
    const before = await mainPid()
    await machine.get('systemctl', 'reload', 'namegate')
    const successor = await mainPid()
    assert.notEqual(successor, before)
    assert.match(await machine.get('cat', `/proc/${successor}/status`), RESTRICTED)
    await machine.untilProperty('namegate', 'StatusText', /^serves/)
    await lostNothing(client, t)
    await isEnforced()

    const good = await machine.get('cat', CONFIG)
    await machine.write(CONFIG, FAULTY)
    assert.equal((await machine.run('systemctl', ['reload', 'namegate'])).code, 1)
    assert.equal(await mainPid(), successor)
    await machine.write(CONFIG, good)
    await machine.get('rm', dropIn)
    await machine.get('systemctl', 'daemon-reload')
    await machine.get('systemctl', 'restart', 'namegate')
    const said = await machine.get('journalctl', '--no-pager', '-o', 'cat', `_PID=${successor}`)
    assert.match(said, /stopping; what the kernel enforces stays in force/)
  })

  it('the watchdog restarts a daemon that hangs, and enforcement continues meanwhile', async () => {
    // Shorter than the limit of the unit, to wait less.
    const dropIn = '/run/systemd/system/namegate.service.d/watchdog.conf'
    await machine.write(dropIn, '[Service]\nWatchdogSec=4s\n')
    await machine.get('systemctl', 'daemon-reload')
    await machine.get('systemctl', 'restart', 'namegate')
    const hung = await mainPid()
    await machine.get('kill', '-STOP', String(hung))
    await isEnforced()
    await machine.untilProperty('namegate', 'MainPID', new RegExp(`^(?!(0|${hung})$)`))
    await machine.untilProperty('namegate', 'ActiveState', /^active$/)
    assert.match(await machine.journal('namegate'), /Watchdog timeout/)
    await machine.get('rm', dropIn)
    await machine.get('systemctl', 'daemon-reload')
    assert.notEqual(await ask('late.test'), '')
    await isEnforced()
  })

  it('systemctl stop of both units leaves enforcement, and no query reaches a server', async () => {
    await machine.get('systemctl', 'stop', 'namegate.socket', 'namegate.service')
    assert.equal(await machine.property('namegate', 'Result'), 'success')
    await isEnforced()
    const { stdout } = await site.pod.run('dig', ['+tries=1', '+time=1', `@${SERVER}`, 'www.test'])
    assert.doesNotMatch(stdout, /ANSWER: [1-9]/)
  })

  it('systemctl start of the service alone also starts its socket unit', async () => {
    await machine.get('systemctl', 'start', 'namegate.service')
    assert.equal(await machine.property('namegate.socket', 'ActiveState'), 'active')
    assert.notEqual(await ask('www.test'), '')
  })

  it('namegate.service fails at once on a faulty configuration, logs the place of the fault, and does not restart', async () => {
    const good = await machine.get('cat', CONFIG)
    await machine.get('systemctl', 'stop', 'namegate.socket', 'namegate.service')
    await machine.write(CONFIG, FAULTY)
    const { code } = await machine.run('systemctl', ['start', 'namegate'])
    assert.equal(code, 1)
    await machine.untilProperty('namegate', 'ActiveState', /^failed$/, 20_000)
    assert.equal(await machine.property('namegate', 'Result'), 'exit-code')
    assert.equal(await machine.property('namegate', 'ExecMainStatus'), '2')
    assert.equal(await machine.property('namegate', 'NRestarts'), '0')
    assert.match(await machine.journal('namegate'), /namegate\.yaml:\d+:1: unknown key datapth/)
    await isEnforced()
    await machine.write(CONFIG, good)
    await machine.get('systemctl', 'restart', 'namegate')
    assert.equal(await machine.property('namegate.socket', 'ActiveState'), 'active')
    assert.notEqual(await ask('www.test'), '')
  })
})
