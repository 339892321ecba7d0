// A full map of the kernel. Answers whose addresses the map refuses are held out, the daemon is not ready and names the reason, and
// addresses in the map stay allowed.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadProgram } from '../../../src/datapath/ebpf/program.ts'
import { loadBpf, loadPosix } from '../../../src/native/native.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Probe, startEcho } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
/** Addresses that fit into the map: those of the node itself, and some names. */
const ROOM = 64
const NAMES = 100
const FIRST = '198.18.16.0'
const PORT = 7000
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: fresh }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '*.fresh.test' }] }]
`

describe('a daemon whose map of addresses is full', { skip, timeout: 280_000 }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    namegate = new Namegate(lab, {
      policies: { 'fresh.yaml': POLICY },
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
      ],
    })
    // Pinned maps keep their size.
    const bpf = loadBpf()
    bpf.unload(loadProgram(bpf, loadPosix(), namegate.pinPath, { ng_hosts: ROOM }).handle)
    const zones = { fresh: { 'fresh.test': { first4: FIRST } } }
    await Promise.all([lab.startNameServer(zones), startEcho(lab.internet, PORT)])
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('holds out what it cannot enforce, is not ready, and keeps what it has', async (t) => {
    const pod = lab.pods[0]!
    const names = Array.from({ length: NAMES }, (_, i) => `n${i}.fresh.test`)
    const args = ['+noall', '+comments', '+answer', '+tries=1', '+time=5', `@${pod.gateway4}`]
    const { stdout } = await pod.host.run('dig', [...args, ...names], { limitMs: 60_000 })
    const codes = [...stdout.matchAll(/status: (\w+)/g)].map(([, code]) => code)
    const good = codes.filter((code) => code === 'NOERROR').length
    const held = codes.filter((code) => code === 'SERVFAIL').length
    t.diagnostic(`${good} answers released, ${held} held out`)
    assert.ok(good > 0 && held > 0 && good + held === NAMES, codes.join(' '))
    const { code, stdout: status, stderr } = await namegate.run('status', '--ready')
    assert.equal(code, 1)
    assert.match(`${status}${stderr}`, /the datapath refuses \d+ entries/)
    const [address = ''] = /198\.18\.\d+\.\d+/.exec(stdout) ?? []
    const probe = await Probe.begin(pod.host, 50, address, PORT)
    await probe.untilConnected(PORT, 0, 10_000)
    await probe.stop()
    assert.ok(namegate.prefixes().size <= ROOM)
  })

  it('logs it once with the limit, and logs the end', async () => {
    const { daemon } = namegate
    await daemon.untilOutput(
      /WARN: the kernel refuses entries: .*"limit":"limits\.pairs".*"reason":"(?:E2BIG|ENOSPC)"/,
    )
    namegate.writePolicies({})
    await daemon.untilOutput(/INFO.*: the kernel takes all entries again/)
    assert.equal(daemon.stderr.match(/the kernel refuses entries/g)?.length, 1)
  })
})
