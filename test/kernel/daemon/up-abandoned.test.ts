// Rules that a killed `namegate up` leaves in force: `doctor` and `status` name them, and print the commands that continue or remove them.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'

const LIMIT_MS = 120_000
/** Kills `up` and its daemon, which leaves the rules. Then follows the remedy that doctor prints. */
const SCRIPT = `
set -u
mount --bind resolv.conf /etc/resolv.conf
mkdir -p /run/namegate && mount -t tmpfs none /run/namegate
$NG up --netns $BOX --allow www.shop.test > up.log 2>&1 & up=$!
for i in $(seq 200); do grep -q 'is protected' up.log && break; sleep 0.2; done
daemon=$($NG status -o json | sed -n 's/.*"pid": \\([0-9]*\\).*/\\1/p')
$NG doctor | grep enforcement
kill -9 $up $daemon
while kill -0 $daemon 2>/dev/null; do sleep 0.1; done
echo '--- dead'
$NG status
$NG doctor > doctor.log
grep -A1 enforcement doctor.log
echo '--- removed'
eval "$(sed -n 's/.*to remove the rules: //p' doctor.log | head -1)"
$NG doctor | grep enforcement
ls /run/namegate
`

describe('namegate up that was killed', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab
  let folder = ''

  before(async () => {
    lab = podLab({ pods: 1 })
    // doctor waits for name servers that do not answer.
    await lab.startNameServer({ names: {} })
    folder = mkdtempSync(join(tmpdir(), 'ng-abandoned-'))
  })
  after(async () => {
    await lab.close()
    rmSync(folder, { recursive: true, force: true })
  })

  for (const [resolver, why] of [
    [DNS_4, 'with eBPF, on the host'],
    ['127.0.0.53', 'with nftables, inside the namespace'],
  ] as const) {
    it(`has its rules named by status and doctor, with commands that remove them: ${why}`, async () => {
      const [pod] = lab.pods
      assert.ok(pod !== undefined)
      writeFileSync(join(folder, 'resolv.conf'), `nameserver ${resolver}\n`)
      const upstream = resolver === DNS_4 ? '' : ` --upstream ${DNS_4}`
      const env = { NO_COLOR: '1', NG: PROGRAM, BOX: `${pod.host.namespace}${upstream}` }
      const ran = await lab.node.run('unshare', ['--mount', 'bash', '-c', SCRIPT], {
        cwd: folder,
        env,
        limitMs: LIMIT_MS,
      })
      const { stdout } = ran
      const [alive = '', dead = '', removed = ''] = stdout.split(/^--- \w+$/m)
      const text = `${stdout}\n${ran.stderr}`
      assert.match(alive, /^ok +enforcement/m, text)
      assert.match(
        ran.stderr,
        /No daemon[^]*namegate up --netns .*in force, and its daemon is dead/,
        text,
      )
      assert.match(
        dead,
        /^PROBLEM +enforcement +the rules of '.*up --netns .*' are in force/m,
        text,
      )
      assert.match(
        dead,
        /remedy: to continue, run it again.*; to remove the rules: .*detach --config/,
      )
      assert.match(removed, /^ok +enforcement/m, text)
      assert.doesNotMatch(removed, /\.lock/, text)
    })
  }
})
