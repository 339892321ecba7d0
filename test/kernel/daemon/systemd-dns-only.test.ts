// The DNS-only form of deploy/systemd under a systemd of its own: without root, with one capability and a filter for system calls.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseMachine, type SystemdMachine } from '../../support/labs/systemd-machine.ts'
import { NAMEGATE, SERVER, SystemdSite } from '../../support/labs/systemd-site.ts'
import { SteadyLoad } from '../../support/peers/steady-load.ts'

const skip = (await canUseMachine()) ?? false
/** CAP_NET_BIND_SERVICE alone. */
const ONE_CAPABILITY = '0000000000000400'

describe('deploy/systemd in its DNS-only form', { skip, timeout: 180_000 }, () => {
  let site: SystemdSite
  let machine: SystemdMachine
  let load: SteadyLoad
  before(async () => {
    load = new SteadyLoad()
    site = new SystemdSite({ mode: 'dns-only' })
    machine = site.machine
    await site.start()
    await load.serve(site.internet, SERVER)
  })
  after(async () => {
    await site.close()
    load.close()
  })

  it('serves without root, with one capability and a filter for system calls', async () => {
    await machine.get('systemctl', 'start', '--no-block', 'namegate')
    await machine.untilProperty('namegate', 'StatusText', /^serves 127\.0\.0\.1:53$/)
    const pid = await machine.property('namegate', 'MainPID')
    const status = await machine.get('cat', `/proc/${pid}/status`)
    assert.match(status, /^Seccomp:\t2$/m)
    assert.match(status, /^NoNewPrivs:\t1$/m)
    for (const set of ['CapEff', 'CapBnd', 'CapAmb']) {
      assert.match(status, new RegExp(`^${set}:\t${ONE_CAPABILITY}$`, 'm'))
    }
    assert.doesNotMatch(status, /^Uid:\t0\t/m)
  })

  it('refuses a query of an unknown client, and writes its state', async () => {
    const { stdout } = await machine.run('dig', ['+tries=1', '+time=20', '@127.0.0.1', 'a.test'])
    assert.match(stdout, /status: REFUSED/)
    await machine.get('systemctl', 'restart', 'namegate')
    await machine.untilProperty('namegate', 'StatusText', /^serves/)
    assert.match(await machine.get(NAMEGATE, 'status'), /^kept: +generation \d+, image \d+ octets/m)
  })
})
