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
mkdir -p /run/namegate && mount -t tmpfs none /run/namegate && mount -t bpf none /sys/fs/bpf
rm -f up.log
$NG up --netns $BOX --allow www.shop.test > up.log 2>&1 & up=$!
for i in $(seq 200); do grep -qs 'is protected' up.log && break; sleep 0.2; done
grep -q 'is protected' up.log || cat up.log >&2
daemon=$($NG status -o json | sed -n 's/.*"pid": \\([0-9]*\\).*/\\1/p')
$NG doctor | grep enforcement
sock=$(ls /run/namegate/up-*/admin.sock)
echo '--- starts'
# As while a daemon starts or ends: it has its locks, and no socket.
kill -STOP $daemon; mv $sock aside
$NG doctor | grep enforcement
mv aside $sock; kill -CONT $daemon
echo '--- replaced'
node -e 'require("net").createServer().listen("dead.sock", () => process.kill(process.pid, "SIGKILL"))' || true
mv -f dead.sock $sock
$NG status --socket $sock 2>&1
eval "$($NG doctor | sed -n 's/.*makes its socket again: //p' | head -1)"
for i in $(seq 100); do $NG status --socket $sock > /dev/null 2>&1 && break; sleep 0.1; done
$NG doctor | grep enforcement
kill -9 $up $daemon
while kill -0 $daemon 2>/dev/null; do sleep 0.1; done
echo '--- dead'
$NG status
$NG doctor > doctor.log
grep -A1 enforcement doctor.log
sed -n '/^warning *daemon /,+1p' doctor.log
echo '--- foreign'
$NG run --config other.yaml 2> other.log & other=$!
until $NG status --socket $PWD/other.sock > /dev/null 2>&1 || ! kill -0 $other; do sleep 0.1; done
$NG status 2>&1
node -e 'require("net").createServer().listen("/run/namegate/more.sock")' & more=$!
while ! [ -e /run/namegate/more.sock ]; do sleep 0.1; done
echo /run/namegate/more.sock > /run/namegate/more.socket
$NG status 2>&1
kill $other $more
wait $other
echo '--- removed'
# Without the last command, which removes the folder with the note.
eval "$(sed -n 's/.*to remove the rules: \\(.*\\); rm -rf [^;]*up-[^;]*$/\\1/p' doctor.log | head -1)"
$NG doctor | grep enforcement
ls /run/namegate
echo '--- later'
# The note of the killed run is still there, and the tables of this network namespace are those of another daemon.
$NG up --netns $LATER > later.log 2>&1 & later=$!
for i in $(seq 200); do grep -qs 'is protected' later.log && break; sleep 0.2; done
grep -o 'is protected' later.log || cat later.log >&2
$NG doctor | grep enforcement
$NG status 2>&1
kill -INT $later; wait $later
echo '--- end'
`
/** Ends `up --write`, and kills a daemon that runs with the written configuration. Then follows both remedies that doctor prints. */
const WRITTEN = `
set -u
mount --bind resolv.conf /etc/resolv.conf
mkdir -p /run/namegate && mount -t tmpfs none /run/namegate && mount -t bpf none /sys/fs/bpf
rm -f up.log
$NG up --netns $BOX --allow www.shop.test --write 'a folder' > up.log 2>&1 & up=$!
for i in $(seq 200); do grep -qs 'is protected' up.log && break; sleep 0.2; done
grep -q 'is protected' up.log || cat up.log >&2
kill -INT $up; wait $up
start() {
  eval "$1" 2> run.log & run=$!
  until $NG status > /dev/null 2>&1 || ! kill -0 $run; do sleep 0.1; done
  $NG status > /dev/null || cat run.log >&2
}
start "exec $NG run --config 'a folder/namegate.yaml'"
$NG doctor | grep enforcement
kill -9 $run; wait $run
echo '--- dead'
$NG doctor > doctor.log
grep -A1 enforcement doctor.log
echo '--- elsewhere'
# A configuration with the same pin path is found by its place. Its daemon ran before, so its note is older.
mkdir other && cp -r 'a folder' other/config && cd other
$NG doctor | grep -A1 enforcement
$NG status 2>&1
sed "2s,.*,$PWD/config/namegate.yaml," /run/namegate/*.pins > /run/namegate/0.pins && touch -d '1 hour ago' /run/namegate/0.pins
$NG doctor | grep -A1 enforcement
rm /run/namegate/0.pins && cd ..
echo '--- continued'
start "exec $(sed -n 's/.*start the daemon: \\(.*\\); to remove the rules: .*/\\1/p' doctor.log | head -1)"
$NG doctor | grep enforcement
kill -9 $run; wait $run
echo '--- unknown'
mkdir aside && mv /run/namegate/*.pins aside
$NG doctor | grep -A1 enforcement
mv aside/* /run/namegate && rmdir aside
echo '--- removed'
eval "$($NG doctor | sed -n 's/.*to remove the rules: //p' | head -1)"
$NG doctor | grep enforcement
ls /run/namegate
`
const OTHER =
  'policies: { paths: [] }\nendpoints: { files: [] }\nlisteners: [{ port: 5399 }]\ndatapath: { kind: memory }\nadmin: { socket: other.sock }\nmetrics: { port: 0 }\n'

describe('namegate up that was killed', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab
  let folder = ''

  before(async () => {
    lab = podLab({ pods: 2 })
    // doctor waits for name servers that do not answer.
    await lab.startNameServer({ names: {} })
    folder = mkdtempSync(join(tmpdir(), 'ng-abandoned-'))
  })
  after(async () => {
    await lab.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('has its eBPF programs named by doctor when a daemon with the written configuration was killed', async () => {
    const [pod] = lab.pods
    assert.ok(pod !== undefined)
    writeFileSync(join(folder, 'resolv.conf'), `nameserver ${DNS_4}\n`)
    const ran = await lab.node.run('unshare', ['--mount', 'bash', '-c', WRITTEN], {
      cwd: folder,
      env: { NO_COLOR: '1', NG: PROGRAM, BOX: pod.host.namespace },
      limitMs: LIMIT_MS,
    })
    const { stdout } = ran
    const [alive = '', dead = '', elsewhere = '', continued = '', unknown = '', removed = ''] =
      stdout.split(/^--- \w+$/m)
    const text = `${stdout}\n${ran.stderr}`
    assert.match(alive, /^ok +enforcement/m, text)
    const pins = `eBPF programs \\(pins in /sys/fs/bpf/namegate-up-\\S+\\)`
    const found = new RegExp(
      `^PROBLEM +enforcement +${pins} and rules of interception .* in force`,
      'm',
    )
    assert.match(dead, found, text)
    const config = `'${join(folder, 'a folder/namegate.yaml')}'`
    assert.ok(dead.includes(`run --config ${config}; to remove the rules: `), text)
    const named = [...elsewhere.matchAll(/start the daemon: \S+ run --config ('.*?'|\S+)/g)]
    assert.deepEqual(
      named.map(([, file]) => file?.replace(/;$/, '')),
      [config, config, config],
      text,
    )
    assert.match(continued, /^ok +enforcement/m, text)
    assert.match(unknown, found, text)
    assert.match(unknown, /detach --config FILE;.*\(FILE: the configuration /, text)
    assert.match(removed, /^ok +enforcement/m, text)
    assert.doesNotMatch(removed, /\.lock|\.pins/, text)
  })

  for (const [resolver, why] of [
    [DNS_4, 'with eBPF, on the host'],
    ['127.0.0.53', 'with nftables, inside the namespace'],
  ] as const) {
    it(`has its rules named by status and doctor, with commands that remove them: ${why}`, async () => {
      const [pod, other] = lab.pods
      assert.ok(pod !== undefined && other !== undefined)
      writeFileSync(join(folder, 'resolv.conf'), `nameserver ${resolver}\n`)
      writeFileSync(join(folder, 'other.yaml'), `upstreams: { servers: ['${DNS_4}:53'] }\n${OTHER}`)
      const upstream = resolver === DNS_4 ? '' : ` --upstream ${DNS_4}`
      const boxes = {
        BOX: `${pod.host.namespace}${upstream}`,
        LATER: `${other.host.namespace}${upstream} --allow www.shop.test`,
      }
      const env = { NO_COLOR: '1', NG: PROGRAM, ...boxes }
      const ran = await lab.node.run('unshare', ['--mount', 'bash', '-c', SCRIPT], {
        cwd: folder,
        env,
        limitMs: LIMIT_MS,
      })
      const { stdout } = ran
      const [alive = '', starts = '', replaced = '', dead = '', foreign = '', ...rest] =
        stdout.split(/^--- \w+$/m)
      const [removed = '', later = ''] = rest
      const ended = `the daemon of netns ${pod.host.namespace} has ended without cleaning up, and its rules are in force`
      const text = `${stdout}\n${ran.stderr}`
      assert.match(alive, /^ok +enforcement/m, text)
      assert.match(starts, /^ok +enforcement/m, text)
      assert.match(replaced, /No daemon[^]*runs, and another file took the place of its/, text)
      assert.match(replaced, /^ok +enforcement/m, text)
      assert.match(ran.stderr, new RegExp(`No daemon[^]*${ended}`), text)
      assert.match(dead, new RegExp(`^PROBLEM +enforcement +${ended}`, 'm'), text)
      assert.match(dead, /^warning +daemon +none answers at \S+\n +remedy: see enforcement$/m, text)
      const warned = new RegExp(`^namegate: ${ended}: .*run it again`, 'm')
      assert.match(foreign, warned, `one other daemon: ${text}`)
      assert.match(foreign, new RegExp(`2 daemons run[^]*${ended}`), text)
      assert.match(
        dead,
        /remedy: to continue, run it again.*; to remove the rules: .*detach --config/,
      )
      assert.match(removed, /^ok +enforcement/m, text)
      assert.doesNotMatch(removed, /\.lock|\.pins/, text)
      assert.match(later, /^is protected$/m, text)
      assert.match(later, /^ok +enforcement/m, text)
      assert.doesNotMatch(later, /without cleaning up/, text)
    })
  }
})
