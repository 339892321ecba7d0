// `namegate datapath verify` names entries that another program changed. `namegate datapath mode` works through the pins while the daemon
// is stopped.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readPinnedMode, setPinnedMode } from '../../../src/datapath/ebpf/break-glass.ts'
import { loadBpf } from '../../../src/native/native.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Probe, startEcho, unixNow } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
const DENIED = '198.18.66.6'
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ranges }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toCIDR: [198.18.71.0/24] }, { toCIDR: [198.18.72.0/24] }]
`

let lab: PodLab
let namegate: Namegate

before(async () => {
  if (skip !== false) return
  lab = podLab()
  namegate = new Namegate(lab, { policies: { 'ranges.yaml': POLICY }, endpoints: [ENDPOINT] })
  await Promise.all([lab.startNameServer({}), startEcho(lab.internet, 80)])
  await namegate.start()
})

after(async () => {
  if (skip !== false) return
  namegate.daemon.kill('SIGCONT')
  await namegate.close()
  await lab.close()
})

/** The key of ng_ipcache for an address and a prefix length (layout.h), as arguments of bpftool. */
function keyOf(address: string, length: number): string[] {
  const key = Buffer.alloc(28)
  new Uint32Array(key.buffer, key.byteOffset, 1)[0] = 64 + length
  key.writeUInt32BE(4, 8)
  key.set(address.split('.').map(Number), 12)
  return ['hex', ...(key.toString('hex').match(/../g) ?? [])]
}

interface Difference {
  readonly map: string
  readonly key: string
  readonly want: string | null
  readonly have: string | null
}

describe('namegate datapath verify', { skip }, () => {
  async function verify(): Promise<{ code: number; differences: readonly Difference[] }> {
    const { code, stdout, stderr } = await namegate.run('datapath', 'verify', '-o', 'json')
    assert.ok(stdout !== '', stderr)
    const { differences } = JSON.parse(stdout) as { differences: readonly Difference[] }
    return { code, differences }
  }

  it('finds no difference in untouched maps', async () => {
    assert.deepEqual(await verify(), { code: 0, differences: [] })
  })

  it('names a deleted, a changed and an added entry', async () => {
    const map = ['pinned', namegate.pin('ng_ipcache')]
    const old = (await namegate.bpftool(
      'map',
      'lookup',
      ...map,
      'key',
      ...keyOf('198.18.72.0', 24),
    )) as {
      value: string[]
    }
    const value = old.value.map((octet) => octet.replace('0x', ''))
    const other = ['hex', '0a', ...value.slice(1)]
    await namegate.bpftool('map', 'delete', ...map, 'key', ...keyOf('198.18.71.0', 24))
    for (const key of [keyOf('198.18.72.0', 24), keyOf('203.0.113.9', 32)]) {
      await namegate.bpftool('map', 'update', ...map, 'key', ...key, 'value', ...other)
    }
    const { code, differences } = await verify()
    assert.equal(code, 1)
    const shapes = differences.map(({ map: name, key, want, have }) => {
      return [name, key, want === null ? 'added' : have === null ? 'deleted' : 'changed']
    })
    assert.deepEqual(
      shapes.toSorted(([, a = ''], [, b = '']) => (a < b ? -1 : 1)),
      [
        ['ng_ipcache', '198.18.71.0/24', 'deleted'],
        ['ng_ipcache', '198.18.72.0/24', 'changed'],
        ['ng_ipcache', '203.0.113.9/32', 'added'],
      ],
    )
  })
})

describe('namegate datapath mode, with the daemon stopped', { skip }, () => {
  /**
   * Sets the mode. `old` and `now` are the last time at which the pins had the old mode and the first time at which they had the new one,
   * as in `Attempt`.
   */
  async function setMode(
    mode: 'bypass' | 'enforce',
  ): Promise<{ began: number; old: number; now: number }> {
    const bpf = loadBpf()
    const { pinPath } = namegate
    const began = unixNow()
    const done = namegate.run('datapath', 'mode', mode)
    let old = began
    while (readPinnedMode(bpf, pinPath) !== mode && unixNow() - began < 10_000) {
      old = unixNow()
      await sleep(1)
    }
    const now = unixNow()
    const { code, stdout, stderr } = await done
    assert.equal(code, 0, stdout + stderr)
    return { began, old, now }
  }

  it('bypass opens while the daemon hangs, and enforce closes again', async (t) => {
    namegate.daemon.kill('SIGSTOP')
    const probe = await Probe.begin(lab.pods[0]!.host, 5, DENIED, 80)
    await sleep(100)
    const bypass = await setMode('bypass')
    const opened = await probe.untilConnected(80, bypass.began)
    const enforce = await setMode('enforce')
    await sleep(300)
    await probe.stop()

    const [took, own] = [opened.ended - bypass.began, bypass.now - bypass.began]
    t.diagnostic(
      `the first connection succeeded ${took.toFixed(1)} ms after the command began; the pins changed after ${own.toFixed(0)} ms`,
    )
    const attempts = probe.attempts(80)
    const wrong = attempts.filter(({ began, ended, connected }) => {
      return connected && (began > enforce.now || ended < bypass.began)
    })
    assert.deepEqual(wrong, [])
    assert.ok(attempts.some(({ began }) => began > enforce.now))
  })

  it('the pins decide when a stopped daemon continues that was asked for another mode meanwhile', async () => {
    namegate.daemon.kill('SIGSTOP')
    await setMode('bypass')
    setPinnedMode(loadBpf(), namegate.pinPath, 'enforce')
    namegate.daemon.kill('SIGCONT')
    await sleep(1000)
    assert.equal(readPinnedMode(loadBpf(), namegate.pinPath), 'enforce')
    const { mode } = (await namegate.status()) as { mode: string }
    assert.equal(mode, 'enforce')
  })

  it('a running daemon adopts the mode', async () => {
    await setMode('bypass')
    const { mode } = (await namegate.status()) as { mode: string }
    assert.equal(mode, 'bypass')
    await setMode('enforce')
  })
})
