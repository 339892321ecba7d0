// The trial of a Debian package on one release of Debian, in the steps of its user: install, protect a workload, upgrade under load, purge.
// Compares the files and the kernel of the machine before and after.

import assert from 'node:assert/strict'
import { outputIn, settings, snapshot } from '../support/labs/intercept-lab.ts'
import { DebianMachine } from './debian-machine.ts'
import { fetch, firstConnections } from './first-connections.ts'
import { isWhole, lossDuring, lossText } from './load.ts'
import { PackageSite, REFUSED, SETTINGS } from './site.ts'
import type { Step } from './steps.ts'
import { changesOf } from './traces.ts'

/** The package, and the same package with a newer version. */
export interface Packages {
  readonly first: string
  readonly newer: string
  readonly newerVersion: string
}

/** The files that apt, dpkg, systemd and the console of the machine write during their work. */
const NOTES = [
  '/var/lib/dpkg',
  '/var/lib/apt',
  '/var/log',
  '/var/cache',
  '/run/systemd',
  '/run/log',
  '/run/agetty.reload',
]
/** More names than namegate can learn after the upgrade, so some of them are from before it. */
const NAMES_LEAST = 5000
/** Also removes packages that a package of the base system only suggests. */
const AUTOREMOVE =
  'apt-get autoremove -y -q --purge -o APT::AutoRemove::SuggestsImportant=0 -o APT::AutoRemove::RecommendsImportant=0'
const APT = 'apt-get install -y -q --no-install-recommends'

export async function tryOnDebian(root: string, packages: Packages, step: Step): Promise<void> {
  const site = new PackageSite()
  let machine: DebianMachine | undefined
  try {
    await site.serve()
    const begin = performance.now()
    await step('boot', async () => {
      machine = await DebianMachine.boot(root, site)
      return `${await machine.get('. /etc/os-release; echo $PRETTY_NAME')}, ${seconds(begin)}`
    })
    assert.ok(machine)
    await trySteps(site, machine, packages, step)
  } finally {
    await machine?.close()
    await site.close()
  }
}

async function trySteps(
  site: PackageSite,
  machine: DebianMachine,
  packages: Packages,
  step: Step,
): Promise<void> {
  const [files, kernel] = [await filesOf(machine), kernelOf(site)]
  await step('install with apt, service starts', async () => {
    const begin = performance.now()
    await machine.get(`${APT} ${machine.share(packages.first)}`)
    const took = seconds(begin)
    await machine.get('systemctl is-enabled namegate && systemctl is-active namegate')
    await machine.get(
      'cd / && namegate status --ready && namegate doctor >/dev/null || test $? = 1',
    )
    assert.equal(await fetch(site, REFUSED, 5), '200', 'without endpoints every name is allowed')
    return `active after ${took}; every name still works`
  })
  await step('first allowed and first refused connection', async () => {
    for (const [file, text] of Object.entries(SETTINGS)) {
      await machine.get(`cat >/etc/namegate/${file} <<'END'\n${text}END`)
    }
    const { allowed, name, address, isProtected, ms } = await firstConnections(site)
    assert.ok(
      isProtected,
      `allowed ${allowed}, name ${name}, address ${address}\n${await journal(machine)}`,
    )
    return `allowed ${allowed}, name ${name}, address ${address}, ${ms} ms after the policy was written`
  })
  await step(
    'upgrade with apt under 1,000 queries a second',
    async () => await upgrade(site, machine, packages),
  )
  await step('after the upgrade', async () => await newerServes(site, machine, packages))
  await step('purge: no file, rule or pin stays', async () => {
    await machine.get(`dpkg -P namegate && ${AUTOREMOVE}`)
    const after = await filesOf(machine)
    assert.deepEqual(changesOf(files, after), [])
    assert.equal(await machine.get("find / -xdev -name '*namegate*'"), '')
    assert.deepEqual(changesOf(kernel, kernelOf(site)), [])
    assert.equal(await fetch(site, REFUSED, 5), '200', 'no policy is in force')
    return `${after.length} paths and ${kernel.length} lines of rules, routes and settings as before`
  })
}

async function upgrade(
  site: PackageSite,
  machine: DebianMachine,
  packages: Packages,
): Promise<string> {
  const before = await mainPid(machine)
  const newer = machine.share(packages.newer)
  let said = ''
  const loss = await lossDuring(
    site,
    async () => void (said = await machine.get(`${APT} ${newer} 2>&1`)),
  )
  assert.notEqual(
    await mainPid(machine),
    before,
    `no process took over\n${said}\n${await journal(machine)}`,
  )
  assert.ok(isWhole(loss), `${lossText(loss)}\n${said}\n${await journal(machine)}`)
  return lossText(loss)
}

async function newerServes(
  site: PackageSite,
  machine: DebianMachine,
  packages: Packages,
): Promise<string> {
  const { version } = JSON.parse(await machine.get('namegate status -o json')) as {
    version: string
  }
  assert.equal(version, packages.newerVersion)
  assert.equal(
    await machine.get('cat /etc/namegate/endpoints.yaml'),
    SETTINGS['endpoints.yaml']?.trim(),
  )
  const names = Number(await machine.get('namegate get names | wc -l'))
  assert.ok(names > NAMES_LEAST, `${names} names`)
  assert.ok((await firstConnections(site)).isProtected, await journal(machine))
  return `version ${version}; ${names} names, edited conffiles and protection as before`
}

async function mainPid(machine: DebianMachine): Promise<string> {
  return await machine.get('systemctl show --value -p MainPID namegate')
}

async function journal(machine: DebianMachine): Promise<string> {
  return (await machine.run('journalctl --no-pager -o cat -n 40 -u namegate')).stdout
}

/** Path, kind, rights and target of every file of the machine. */
async function filesOf(machine: DebianMachine): Promise<readonly string[]> {
  const skipped = NOTES.map((folder) => `-path ${folder} -prune -o`).join(' ')
  const text = await machine.get(
    `find / /run /tmp /sys/fs/bpf -xdev ${skipped} -printf '%p %y %m %l\\n' | sort -u`,
  )
  return text.split('\n')
}

/** Rules, routes, filters and settings of the node. An empty qdisc clsact stays, because another program can use it. */
function kernelOf(site: PackageSite): readonly string[] {
  const filters = ['ingress', 'egress'].flatMap((side) =>
    outputIn(site.node, 'tc', 'filter', 'show', 'dev', site.pod.interface, side).split('\n'),
  )
  return [...snapshot(site.node), ...settings(site.node), ...filters]
}

function seconds(begin: number): string {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`
}
