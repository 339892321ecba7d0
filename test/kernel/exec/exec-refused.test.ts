// `namegate exec` on a machine where it cannot make a sandbox: one line with the remedy, exit code 3, and the command never runs.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'

const skip = canUseExecLab() ?? false

const ROWS: readonly (readonly [what: string, prepare: string, options: string, says: RegExp])[] = [
  [
    'no uplink program',
    'for each in pasta slirp4netns; do found=$(command -v $each) && mount --bind /dev/null $found; done; true',
    '',
    /^namegate: Cannot connect the command: neither pasta nor slirp4netns is installed: apt-get install passt$/m,
  ],
  [
    '--uplink names a program that is not installed',
    'found=$(command -v pasta) && mount --bind /dev/null $found',
    '--uplink pasta',
    /^namegate: Cannot connect the command: pasta is not installed: apt-get install passt$/m,
  ],
  [
    'no permission for tun',
    'chmod 0600 dev/tun',
    '',
    /^namegate: Cannot connect the command: no permission for \/dev\/net\/tun: as root: chmod 0666 \/dev\/net\/tun$/m,
  ],
  [
    'an uplink for root',
    'true',
    '--uplink veth',
    /^namegate: Cannot use --uplink veth: it needs root$/m,
  ],
  [
    'parts of /proc are covered',
    'mount -t tmpfs tmpfs /proc/sys/kernel',
    '',
    /^namegate: Cannot make the sandbox: proc \/proc: EPERM: parts of \/proc are covered/m,
  ],
]

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(() => {
    lab = ExecLab.bare()
  })

  after(async () => {
    await lab.close()
  })

  for (const [what, prepare, options, says] of ROWS) {
    it(`refuses with the remedy: ${what}`, async () => {
      const args = [...options.split(' ').filter(Boolean), '--', 'echo', 'ran']
      const { code, stdout, stderr } = await lab.exec({ who: 'user', args, prepare })
      assert.deepEqual([code, stdout], [3, ''], stderr)
      assert.match(stderr, says)
    })
  }

  it('refuses with the remedy: no user namespaces', async () => {
    const { command, rest } = lab.commandOf('user', ['--', 'echo', 'ran'])
    const none = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'
    const args = ['--user', '--map-root-user', 'sh', '-c', none, 'sh', ...withoutCapabilities(rest)]
    assert.equal(command, 'unshare')
    const { code, stdout, stderr } = await lab.caller.run('unshare', args, { limitMs: 60_000 })
    assert.deepEqual([code, stdout], [3, ''], stderr)
    assert.match(
      stderr,
      /^namegate: Cannot make the sandbox: userns unshare: ENOSPC: this kernel or container allows no user/m,
    )
  })
})

/** The program and its arguments, run without capabilities. */
function withoutCapabilities(rest: readonly string[]): readonly string[] {
  const at = rest.indexOf('exec')
  return [
    'setpriv',
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--',
    'bin/namegate',
    ...rest.slice(at),
  ]
}
