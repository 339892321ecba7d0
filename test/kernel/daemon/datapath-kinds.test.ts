// The configuration names another kind of datapath than the last daemon used. The old datapath still enforces, and a daemon of another kind
// cannot change it. So no daemon of another kind starts until `datapath detach` has removed the old datapath.

import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { readPinnedMode } from '../../../src/datapath/ebpf/break-glass.ts'
import { createGate, UnavailableError } from '../../../src/library.ts'
import { loadBpf } from '../../../src/native/native.ts'
import { pinNoteFile } from '../../../src/daemon/noted-pins.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const ENDPOINT = '{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'

describe('namegate run with another kind of datapath', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    namegate = new Namegate(lab, { policies: {}, endpoints: [ENDPOINT] })
    await lab.startNameServer({})
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  function becomes(datapath: string): void {
    namegate.writeConfig({ policies: {}, endpoints: [ENDPOINT], datapath })
  }

  async function isRefused(left: RegExp, ...how: readonly string[]): Promise<void> {
    const { code, stderr } = await namegate.run('run', ...how)
    assert.deepEqual([code, stderr.trim().split('\n').length], [3, 1], stderr)
    assert.match(stderr, left)
    assert.match(stderr, /namegate datapath detach --config/)
  }

  it('refuses while eBPF programs exist, and break glass still changes their mode', async () => {
    becomes('{ kind: memory }')
    await isRefused(/ebpf left in .*ng-test/, '--take-over')
    await namegate.kill()
    for (const kind of ['memory', 'nftables']) {
      becomes(`{ kind: ${kind} }`)
      await isRefused(/ebpf left in .*ng-test/)
    }
    becomes('{ kind: memory }')
    const { code, stdout } = await namegate.run('datapath', 'mode', 'bypass')
    assert.deepEqual(
      [code, stdout],
      [0, 'mode is bypass; no daemon answers, but the mode is in force in the kernel\n'],
    )
    assert.equal(readPinnedMode(loadBpf(), namegate.pinPath), 'bypass')
  })

  it('refuses if only the config names the pin path, and so does createGate', async () => {
    rmSync(pinNoteFile(namegate.configFile), { force: true })
    const ebpf = { 'pin-path': namegate.pinPath }
    becomes(`{ kind: memory, ebpf: ${JSON.stringify(ebpf)} }`)
    await isRefused(/ebpf left in .*ng-test/)
    const opened = createGate({ config: { datapath: { kind: 'memory', ebpf } } })
    await assert.rejects(opened, (error) => {
      assert.ok(error instanceof UnavailableError)
      assert.match(error.message, /ebpf left in .*ng-test.* namegate datapath detach --config/)
      return true
    })
  })

  it('starts after detach removed the eBPF programs, and detach prints what it removed', async () => {
    const taken = await namegate.run('datapath', 'detach')
    assert.equal(taken.code, 0, taken.stderr)
    assert.match(taken.stdout, /^detached: eBPF programs and the pins in .*ng-test\S*\n$/)
    assert.equal(existsSync(namegate.pinPath), false)
    becomes('{ kind: nftables }')
    await namegate.start({ attached: [] })
    await namegate.kill()
  })

  it('refuses while the nftables table exists, and detach removes it', async () => {
    becomes(`{ kind: ebpf, ebpf: { pin-path: '${namegate.pinPath}' } }`)
    await isRefused(/nftables left/)
    const taken = await namegate.run('datapath', 'detach')
    assert.match(taken.stdout, /^detached: the nftables table\n$/)
    const nothing = await namegate.run('datapath', 'detach')
    assert.match(nothing.stdout, /found nothing of namegate/)
    await namegate.start()
  })
})
