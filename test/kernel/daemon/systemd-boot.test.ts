// A machine with the enabled units of deploy/systemd loses power and boots again. namegate-early.service closes its workloads before any
// unit makes a network. So no packet of a pod that sends all the time reaches the peer before namegate.service has loaded policy, however
// long that takes. The peer counts every packet.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import { describe, it } from 'node:test'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { Counter, receivedIn, startSender } from '../../support/peers/boot-traffic.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { SteadyDns } from '../../support/peers/steady-dns.ts'
import { canUseMachine, type SystemdMachine } from '../../support/labs/systemd-machine.ts'
import {
  ALLOWED_PORT,
  CONFIG,
  NAMEGATE,
  SERVER,
  SystemdSite,
  type SystemdSiteOptions,
} from '../../support/labs/systemd-site.ts'
import { startEcho } from '../../support/peers/traffic.ts'

/** Closing interfaces by name needs kernel 6.4 (src/datapath/ebpf/programs/gate.bpf.c). */
const [major = 0, minor = 0] = release().split('.').map(Number)
const isOld = major < 6 || (major === 6 && minor < 4)
const noMachine = await canUseMachine()

const DENIED = ['198.18.66.6', '2001:db8:80::66']
const PACKETS = 400
const GO = '/run/go'
/** Delays the daemon until the test makes the file. */
const HELD = `[Service]
ExecStartPre=/bin/sh -c 'until test -e ${GO}; do sleep 0.05; done'
`
const UNITS = ['namegate-early.service', 'namegate.service', 'namegate.socket']

interface Row extends SystemdSiteOptions {
  /** Units of the machine's own packages that are enabled, too. */
  readonly units: readonly string[]
}

/** The time at which a unit entered a state, in microseconds since boot. */
async function microseconds(machine: SystemdMachine, unit: string, name: string): Promise<number> {
  return Number(await machine.property(unit, `${name}TimestampMonotonic`))
}

/** Waits until a connection of the pod is open. */
async function connects(site: SystemdSite, address: string): Promise<void> {
  const end = performance.now() + 30_000
  const open = ['1', 'bash', '-c', `: </dev/tcp/${address}/${ALLOWED_PORT}`]
  while ((await site.pod.run('timeout', open)).code !== 0) {
    assert.ok(performance.now() < end, `no connection to ${address}`)
  }
}

async function ask(site: SystemdSite): Promise<string> {
  const { stdout } = await site.pod.run('dig', ['+short', '+tries=3', `@${SERVER}`, 'www.test'])
  return stdout.trim()
}

async function reboot(row: Row, tell: (text: string) => void): Promise<void> {
  const site = new SystemdSite(row)
  const { machine } = site
  const servers = new SteadyDns()
  const counter = new Counter(site.internet)
  const received = async (): Promise<number> =>
    receivedIn(await machine.get('ip', '-s', '-j', 'link', 'show', 'lxc1'))
  try {
    await Promise.all([
      site.start(),
      servers.serve(site.internet, SERVER),
      startEcho(site.internet, ALLOWED_PORT),
    ])
    await machine.get('systemctl', 'enable', ...UNITS, ...row.units)
    await machine.get('systemctl', 'start', ...UNITS)
    const allowed = await ask(site)
    await connects(site, allowed)
    const second = await machine.run(NAMEGATE, ['datapath', 'close', '--config', CONFIG])
    assert.equal(second.code, 3, 'a second namegate beside the daemon of the unit')
    assert.match(second.stderr, /in use by the namegate with pid \d+/)
    await machine.write('/etc/systemd/system/namegate.service.d/held.conf', HELD)
    await machine.get('sync')

    await machine.cut()
    await counter.begin([allowed, ...DENIED])
    await startSender(site.pod, [allowed, ...DENIED])
    await machine.boot()
    for (const unit of ['namegate-early', 'site-network']) {
      await machine.untilProperty(unit, 'ActiveState', /^active$/)
    }
    const closed = await microseconds(machine, 'namegate-early', 'ActiveEnter')
    const network = await microseconds(machine, 'site-network', 'InactiveExit')
    assert.ok(closed < network, `closed at ${closed} us, the network began at ${network} us`)
    const end = performance.now() + 30_000
    while ((await received()) < PACKETS) assert.ok(performance.now() < end, 'the pod sends')
    assert.deepEqual(Object.values(await counter.read()), [0, 0, 0])
    await machine.untilProperty('namegate', 'SubState', /^start-pre$/)
    tell(`${await received()} packets left the pod, 0 reached the peer`)

    await machine.write(GO, '')
    await machine.untilProperty('namegate', 'ActiveState', /^active$/)
    assert.equal(await ask(site), allowed)
    await connects(site, allowed)
    assert.deepEqual(Object.values(await counter.read()).slice(1), [0, 0])
    // The sender and the counter work: with bypass, packets arrive.
    await machine.get(NAMEGATE, 'datapath', 'mode', 'bypass', '--config', CONFIG)
    await connects(site, DENIED[0] ?? '')
    assert.ok(((await counter.read())[DENIED[0] ?? ''] ?? 0) > 0)
  } finally {
    await site.close()
  }
}

/** The drop-in that docs/boot.md shows for the unit of the network. */
function shownDropIn(): string {
  const shown = /^ {4}# \/etc\/systemd\/system\/.*\n((?: {4}.*\n)+)/m.exec(
    readFileSync('docs/boot.md', 'utf8'),
  )
  return (shown?.[1] ?? '').replaceAll(/^ {4}/gm, '')
}

/** The state of the network's unit after namegate-early.service failed. */
async function networkAfterFault(site: SystemdSite, dropIn: string): Promise<string> {
  const { machine } = site
  await machine.write('/etc/systemd/system/site-network.service.d/strict.conf', dropIn)
  await machine.get('sync')
  await machine.cut()
  await machine.boot()
  await machine.settled()
  assert.equal(await machine.property('namegate-early', 'ActiveState'), 'failed')
  assert.equal(await machine.property('namegate-early', 'ExecMainStatus'), '2')
  return await machine.property('site-network', 'ActiveState')
}

describe('namegate-early.service on a machine that boots', () => {
  const ebpf = noMachine ?? canUseNamegate() ?? (isOld ? 'needs kernel 6.4' : false)
  it('lets no packet out before the daemon, eBPF', { skip: ebpf, timeout: 280_000 }, async (t) => {
    await reboot({ mode: 'tproxy', units: [] }, (text) => t.diagnostic(text))
  })

  const nftables = noMachine ?? nftablesMaker.unavailable ?? false
  it(
    'lets no packet out before the daemon, nftables, beside nftables.service',
    { skip: nftables, timeout: 280_000 },
    async (t) => {
      const row = { datapath: '{ kind: nftables }', units: ['nftables.service'] }
      await reboot({ mode: 'tproxy', ...row }, (text) => t.diagnostic(text))
    },
  )

  it(
    'leaves the network down after a fault only where the network requires it',
    { skip: noMachine, timeout: 280_000 },
    async () => {
      const site = new SystemdSite({ mode: 'tproxy' })
      try {
        await site.start()
        await site.machine.write(CONFIG, 'datapth: {}\n')
        await site.machine.get('systemctl', 'enable', 'namegate-early')
        assert.equal(await networkAfterFault(site, ''), 'active')
        assert.equal(await networkAfterFault(site, shownDropIn()), 'inactive')
      } finally {
        await site.close()
      }
    },
  )
})
