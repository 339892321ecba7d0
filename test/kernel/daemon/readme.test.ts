// Runs the recipe of README.md that protects a network namespace, as printed. It runs on a host with its own internet and in its own mount
// namespace, so its namespace "box" and its files do not meet those of this machine.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { podLab, startHelper, type PodLab } from '../../support/labs/lab-pod.ts'

const SERVER = '9.9.9.9'
const ZONES = { names: { 'example.com': ['198.18.0.1'], 'example.org': ['198.18.0.2'] } }
const LIMIT_MS = 120_000

const skip = canUseNamegate() ?? false

/** The one block of README.md that makes a network namespace. */
function recipe(): string {
  const blocks = [...readFileSync('README.md', 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)]
  const [script, ...more] = blocks
    .map(([, text = '']) => text)
    .filter((text) => text.includes('ip netns add'))
  assert.ok(script !== undefined && more.length === 0, 'README.md has one recipe')
  return script
}

describe('the recipe of README.md', { skip }, () => {
  let lab: PodLab
  let folder = ''

  before(async () => {
    lab = podLab({ pods: 0 })
    lab.internet.ip('route', 'add', 'local', SERVER, 'dev', 'lo')
    lab.internet.ip('route', 'add', 'local', '1.1.1.1', 'dev', 'lo')
    await startHelper(lab.internet, 'nameserver.ts', [SERVER, '53', JSON.stringify(ZONES)])
    await lab.startWebServer([80])
    folder = mkdtempSync(join(tmpdir(), 'ng-readme-'))
    symlinkSync(resolve('bin'), join(folder, 'bin'))
    // A stub resolver, as many machines have. The box has no server at that address, so the daemon runs inside the box.
    writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.53\n')
    mkdirSync(join(folder, 'resolve'))
    writeFileSync(join(folder, 'resolve/resolv.conf'), `nameserver ${SERVER}\n`)
  })
  after(async () => {
    await lab.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('opens the allowed name, refuses everything else, and leaves nothing', async () => {
    const look = async () => [
      (await lab.node.run('ip', ['-o', 'link'])).stdout,
      (await lab.node.run('nft', ['list', 'ruleset'])).stdout,
    ]
    const untouched = await look()
    const script = [
      'set -e -m',
      'mount --make-rprivate /',
      'mount --bind resolv.conf /etc/resolv.conf',
      // systemd-resolved writes the servers behind the stub to this file.
      'mount -t tmpfs none /run && mkdir -p /run/netns /run/systemd/resolve',
      'cp resolve/resolv.conf /run/systemd/resolve/',
      recipe(),
    ].join('\n')
    const { code, stdout, stderr } = await lab.node.run(
      'unshare',
      ['--mount', 'bash', '-c', script],
      { cwd: folder, env: { NO_COLOR: '1' }, limitMs: LIMIT_MS },
    )
    assert.equal(code, 0, stdout + stderr)
    assert.match(stdout, /is protected \(redirect, nftables, inside the namespace\)/)
    assert.match(stdout, /^example\.com: 200$/m)
    assert.match(stdout, /^example\.org: not allowed$/m)
    assert.match(stdout, /^1\.1\.1\.1: not allowed$/m)
    assert.match(stdout, /^remedy: +add the line example\.org to \S+up\.allow$/m)
    assert.match(stdout, /deny +box +A example\.org denied/)
    assert.match(stdout, /refused  example\.org .*: echo example\.org >> \S+\/up\.allow$/m)
    assert.deepEqual(await look(), untouched)
  })
})
