// Another program changes the pinned maps of a running daemon. The daemon restores changed and deleted entries, and logs the first of them.
// If a pin is missing, the daemon reports it and is not ready.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { until } from '../../support/peers/client.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? false
/** The map that a report names for entries of another one. */
const REPORTED_AS: Readonly<Record<string, string>> = {
  ng_hosts: 'ng_ipcache',
  ng_source: 'ng_endpoints',
}
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

/** Everything in the dump that another program can have changed. */
function held(namegate: Namegate): unknown {
  const { prefixes, policies, endpoints } = namegate.dump()
  const lines: string[] = []
  for (let i = 0; i < prefixes.count; i++) {
    lines.push(`${prefixes.format(i)} ${prefixes.identity(i)} ${prefixes.addressClass(i)}`)
  }
  const entries = policies.map((entry) => JSON.stringify(entry))
  const places = endpoints.map(({ sources, ...endpoint }) => {
    return JSON.stringify({ ...endpoint, sources: sources.length })
  })
  return [lines.sort(), entries.sort(), places.sort()]
}

describe('daemon whose maps another program changes', { skip, timeout: 280_000 }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    const options = { policies: { 'ranges.yaml': POLICY }, endpoints: [ENDPOINT] }
    namegate = new Namegate(lab, options)
    namegate.writeConfig({
      ...options,
      datapath: `{ kind: ebpf, ebpf: { pin-path: '${namegate.pinPath}' }, verify: 1s }`,
    })
    await lab.startNameServer({})
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  interface Entry {
    readonly key: readonly string[]
    readonly value: readonly string[]
  }

  async function entries(map: string): Promise<readonly Entry[]> {
    return (await namegate.bpftool('map', 'dump', 'pinned', namegate.pin(map))) as Entry[]
  }

  /** The dump in a fixed order: a hash map lists restored entries in another order. */
  async function sorted(map: string): Promise<readonly string[]> {
    return (await entries(map)).map((entry) => JSON.stringify(entry)).toSorted()
  }

  function hex(octets: readonly string[]): string[] {
    return ['hex', ...octets.map((octet) => octet.replace('0x', ''))]
  }

  async function deleteAll(map: string): Promise<void> {
    for (const { key } of await entries(map)) {
      await namegate.bpftool('map', 'delete', 'pinned', namegate.pin(map), 'key', ...hex(key))
    }
  }

  for (const map of ['ng_hosts', 'ng_ipcache', 'ng_policy', 'ng_source', 'ng_endpoints']) {
    it(`restores deleted entries of ${map}`, async () => {
      const good = held(namegate)
      await deleteAll(map)
      const isRight = (): true | undefined => {
        return JSON.stringify(held(namegate)) === JSON.stringify(good) ? true : undefined
      }
      await namegate.daemon.until(isRight, 'expected the entries again')
      await namegate.daemon.untilOutput(new RegExp(`${REPORTED_AS[map] ?? map} `))
    })
  }

  it('restores a changed value, and counts it', async () => {
    const good = held(namegate)
    const [entry] = await entries('ng_hosts')
    assert.ok(entry !== undefined)
    const value = ['hex', '0a', ...hex(entry.value).slice(2)]
    const pinned = ['pinned', namegate.pin('ng_hosts')]
    await namegate.bpftool('map', 'update', ...pinned, 'key', ...hex(entry.key), 'value', ...value)
    const isRight = (): true | undefined => {
      return JSON.stringify(held(namegate)) === JSON.stringify(good) ? true : undefined
    }
    await namegate.daemon.until(isRight, 'expected the value again')
    const { datapath } = (await namegate.status()) as { datapath: { repaired: number } }
    assert.ok(datapath.repaired > 4, `${datapath.repaired} repaired`)
  })

  for (const map of ['ng_listeners', 'ng_config', 'ng_gate']) {
    it(`restores changed entries of ${map}`, async () => {
      const good = await sorted(map)
      // The repair runs once a second. The daemon is stopped until the test has made and checked the whole change.
      namegate.daemon.kill('SIGSTOP')
      for (const { key, value } of await entries(map)) {
        const zeros = value.map(() => '00')
        const place = ['pinned', namegate.pin(map), 'key', ...hex(key)]
        // An array map never loses an entry.
        const change =
          map === 'ng_config'
            ? ['update', ...place, 'value', 'hex', ...zeros]
            : ['delete', ...place]
        await namegate.bpftool('map', ...change)
      }
      assert.notDeepEqual(await sorted(map), good)
      namegate.daemon.kill('SIGCONT')
      await namegate.daemon.untilOutput(new RegExp(`"${map} `))
      await until('the entries again', async () => isDeepStrictEqual(await sorted(map), good))
    })
  }

  it('attaches its programs again at once after another program removed them from an interface', async () => {
    const pod = lab.pods[0]
    assert.ok(pod !== undefined)
    // The repair, which runs once a second, would be too slow for this loop.
    for (let i = 0; i < 20; i++) {
      await lab.node.run('tc', ['qdisc', 'del', 'dev', pod.interface, 'clsact'])
      await namegate.daemon.until(
        () => (namegate.isAttached(pod.interface) ? true : undefined),
        'expected the programs again',
      )
    }
    await namegate.daemon.untilOutput(new RegExp(`"tc ${pod.interface}: `))
    const { code } = await namegate.run('datapath', 'verify')
    assert.equal(code, 0)
  })

  it('is not ready when a pin is missing, names the pin, and makes it again at the next start', async () => {
    rmSync(namegate.pin('ng_policy'))
    const { code, stdout, stderr } = await namegate.run('status', '--ready')
    assert.equal(code, 1)
    assert.match(`${stdout}${stderr}`, /pinned maps are gone \(ng_policy\): .*restart it/)
    await namegate.stop()
    await namegate.start()
    assert.ok(namegate.policies().length > 0)
  })

  it('does not restore what detach removed while the daemon was stopped', async () => {
    namegate.daemon.kill('SIGSTOP')
    const { code } = await namegate.run('datapath', 'detach')
    assert.equal(code, 0)
    assert.equal(namegate.isAttached('lxc1'), false)
    namegate.daemon.kill('SIGCONT')
    // Two rounds of the repair, or the end of the daemon.
    await Promise.race([sleep(2500), namegate.daemon.ended(10_000)])
    assert.equal(namegate.isAttached('lxc1'), false)
  })
})
