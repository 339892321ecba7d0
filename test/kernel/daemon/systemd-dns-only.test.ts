// The DNS-only form of deploy/systemd under a systemd of its own: without root, with one capability and a filter for system calls.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { canUseMachine, type SystemdMachine } from '../../support/labs/systemd-machine.ts'
import { CONFIG, NAMEGATE, SERVER, SystemdSite } from '../../support/labs/systemd-site.ts'
import { SteadyLoad } from '../../support/peers/steady-load.ts'

const skip = (await canUseMachine()) ?? false
/** Only CAP_NET_BIND_SERVICE. */
const ONE_CAPABILITY = '0000000000000400'
const TOKEN = '0123456789abcdef0123456789abcdef'
const PAGE = '127.0.0.1:9466'

describe('deploy/systemd in its DNS-only form', { skip, timeout: 280_000 }, () => {
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
    assert.match(
      await machine.get(NAMEGATE, 'status'),
      /^saved: +\d+ octets, last written \d+ s ago$/m,
    )
  })

  it('serves the page for a token that only root can read, with page.conf', async () => {
    await machine.write('/etc/namegate/page-token', TOKEN)
    await machine.get('chmod', '0600', '/etc/namegate/page-token')
    const page = `page: { address: '${PAGE}', token-file: credential:page-token }`
    const config = await machine.get('cat', CONFIG)
    await machine.write(CONFIG, config.replace(/^(admin: \{ .*) \}$/m, `$1, ${page} }`))
    await machine.get('systemctl', 'restart', '--no-block', 'namegate')
    await machine.untilProperty('namegate', 'ExecMainStatus', /^2$/)
    assert.match(
      await machine.journal('namegate'),
      /namegate\.yaml:\d+:\d+: admin\.page\.token-file/,
    )

    const dropIn = 'namegate.service.d/page.conf'
    const text = readFileSync(`deploy/systemd/${dropIn}`, 'utf8')
    await machine.write(`/run/systemd/system/${dropIn}`, text)
    await machine.get('systemctl', 'daemon-reload')
    await machine.get('systemctl', 'start', '--no-block', 'namegate')
    await machine.untilProperty('namegate', 'StatusText', /^serves/)
    const ask = ['-s', '-o', '/dev/null', '-w', '%{http_code}', `http://${PAGE}/`]
    const header = `Authorization: Bearer ${TOKEN}`
    assert.equal(await machine.get('curl', ...ask, '-H', header), '200')
    assert.equal(await machine.get('curl', ...ask), '401')
  })
})
