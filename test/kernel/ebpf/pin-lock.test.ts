// One daemon per bpffs folder, whatever its path. A container with its own bpffs at the same path is another folder; a bind mount of the
// same bpffs is the same folder. The error about a name with a dot names the dot.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ensurePinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { loadPosix } from '../../../src/native/native.ts'
import { Lab, type Host } from '../../support/labs/lab.ts'
import { startHelper } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'

const NAME_SERVER = '127.0.0.9'
const COMMAND = 'bin/namegate'

describe('the lock of a pin path', { skip: canUseNamegate() ?? false }, () => {
  let lab: Lab
  let first: Namegate
  let second: Namegate
  let other: Host

  before(async () => {
    lab = new Lab()
    other = lab.addHost('other')
    const hosts = [lab.addHost('node'), other]
    for (const host of hosts)
      await startHelper(host, 'nameserver.ts', [NAME_SERVER, '53', '{"names":{}}'])
    ;[first, second] = hosts.map((node) => new Namegate({ node, pods: [] }, mkOptions(''))) as [
      Namegate,
      Namegate,
    ]
    first.writeConfig(mkOptions(first.pinPath))
    await first.start({ attached: [] })
  })
  after(async () => {
    await second.close()
    await first.close()
    await lab.close()
  })

  /** Starts the second daemon in its own mount namespace, after the shell commands in `mounts`. */
  function startBehind(mounts: string, pinPath: string): LabProcess {
    second.writeConfig(mkOptions(pinPath))
    const run = `exec ${COMMAND} run --config ${second.configFile}`
    const script = `${mounts} && ${run}`
    return other.start('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script])
  }

  it('is shared by another path to the same bpffs', async () => {
    const elsewhere = join(second.folder, 'bpf')
    mkdirSync(elsewhere)
    const pinPath = first.pinPath.replace('/sys/fs/bpf', elsewhere)
    const daemon = startBehind(`mount --bind /sys/fs/bpf ${elsewhere}`, pinPath)
    const ended = await daemon.ended(20_000)
    assert.equal(ended?.code, 3, daemon.stdout)
    assert.match(
      ended.stderr,
      new RegExp(`pin path .* in use by the namegate with pid ${first.pid}`),
    )
  })

  it('is another one in a mount namespace with another bpffs at the same path', async () => {
    const daemon = startBehind('mount -t bpf none /sys/fs/bpf', first.pinPath)
    await daemon.untilOutput(/namegate serves/)
    await daemon.stop()
  })
})

it(
  'ensurePinDirectory reports a dot below a bpffs before other faults',
  { skip: canUseNamegate() ?? false },
  () => {
    for (const path of ['/sys/fs/bpf/ng-test.dot', '/sys/fs/bpf/ng-test.dot/below']) {
      assert.throws(() => ensurePinDirectory(loadPosix(), path), {
        name: 'UnavailableError',
        message: `Cannot pin maps in ${path}: found "ng-test.dot", expected names without a dot: bpffs takes no others: give another datapath.ebpf.pin-path`,
      })
    }
  },
)

function mkOptions(pinPath: string) {
  return {
    policies: {},
    endpoints: [],
    listenerItems: ["{ address: '127.0.0.1', port: 5300 }"],
    datapath: `{ kind: ebpf, ebpf: { pin-path: '${pinPath}' } }`,
    upstream: `${NAME_SERVER}:53`,
  }
}
