// Rights of a command in `namegate exec`: it lists interfaces, cannot push keys into its terminal, and gets back no capability that the
// launcher dropped.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'

/** TIOCSTI and TIOCLINUX. Without a terminal the kernel answers ENOTTY. */
const KEYS = [0x5412, 0x541c]

describe('a command of namegate exec', { skip: canUseExecLab() ?? false }, () => {
  let lab: ExecLab
  before(async () => {
    lab = await ExecLab.open()
  })
  after(async () => {
    await lab.close()
  })

  for (const who of ['root', 'user'] as const) {
    it(`lists interfaces over netlink, cannot push keys, and keeps no dropped capability, as ${who}`, async () => {
      const keys = KEYS.map((key) => `perl -e 'ioctl(STDIN, ${key}, $x) or print 0+$!, "\\n"'`)
      const script = ['ip -o link show lo', ...keys, 'grep ^Cap /proc/self/status'].join('; ')
      const { stdout, stderr } = await lab.exec({ who, args: ['--', 'sh', '-c', script] })
      assert.match(stdout, /^1: lo: /m, `netlink: ${stderr}`)
      assert.deepEqual(stdout.match(/^\d+$/gm), ['1', '1'], 'EPERM for both')
      const sets = new Map(
        [...stdout.matchAll(/^Cap(\w+):\t([0-9a-f]+)$/gm)].map(([, set, bits]) => [set, bits]),
      )
      assert.ok(sets.has('Bnd'), stdout)
      assert.equal(sets.get('Bnd'), sets.get('Prm'), 'the bounding set is what the command has')
      assert.match(sets.get('Amb') ?? '', /^0+$/)
    })
  }
})
