// How long a pod that the API server reports is not enforced yet: from the address in its status to its endpoint with programs on its
// interface. Prints the times. NAMEGATE_PODS=300 makes so many pods.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import type { Host } from '../../support/labs/lab.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { http } from '../../support/nodes/admin.ts'

const COUNT = Number(process.env['NAMEGATE_PODS'] ?? 20)
const NODE = 'node-a'
const LOOK_MS = 5
const LIMIT_MS = 30_000

const addressOf = (i: number): string => `10.30.${i >> 7}.${(i & 127) + 2}`

void describe(
  'many pods of a cluster',
  { skip: canUseNamegate() ?? canUseControlPlane(), timeout: 900_000 },
  () => {
    let lab: PodLab
    let pods: Host
    let cluster: ControlPlane
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      await lab.startNameServer({ names: {} })
      pods = lab.lab.addHost('pods')
      for (let i = 0; i < COUNT; i++) addVeth(i)
      cluster = new ControlPlane(lab.node)
      await cluster.start()
      await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
      namegate = new Namegate(lab, {
        policies: {},
        endpoints: [],
        config: `default-egress: deny\nkubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE} }`,
      })
      await namegate.start({ attached: [] })
    })
    after(async () => {
      await namegate?.close()
      await cluster?.close()
      await lab.close()
    })

    function addVeth(i: number): void {
      const address = addressOf(i)
      lab.lab.link(
        { host: lab.node, interface: `lxp${i}`, addresses: [] },
        { host: pods, interface: `eth${i}`, addresses: [`${address}/32`] },
      )
      lab.node.ip('route', 'add', `${address}/32`, 'dev', `lxp${i}`)
    }

    /** The names of the endpoints that are enforced. */
    async function enforced(): Promise<readonly string[]> {
      const socketPath = join(namegate.folder, 'admin.sock')
      const { text } = await http({ socketPath }, '/v1/endpoints')
      const rows = JSON.parse(text) as readonly { name: string; enforcing: boolean }[]
      return rows.filter(({ enforcing }) => enforcing).map(({ name }) => name)
    }

    it('enforces each within a moment after its address is known', async (t) => {
      const knownAt = new Map<string, number>()
      const times: number[] = []
      const seen = new Set<string>()
      let isOver = false
      const watching = (async () => {
        while (!isOver) {
          for (const name of await enforced()) {
            const at = knownAt.get(name)
            if (seen.has(name) || at === undefined) continue
            seen.add(name)
            times.push(performance.now() - at)
          }
          await sleep(LOOK_MS)
        }
      })()
      for (let i = 0; i < COUNT; i++) {
        const pod = { namespace: 'shop', name: `p${i}`, node: NODE, labels: { app: 'a' } }
        await cluster.addPod({ ...pod, addresses: [addressOf(i)] })
        // The request ended before now, so the time is a little too short; the look makes it a little too long.
        knownAt.set(`shop/p${i}`, performance.now())
      }
      const until = performance.now() + LIMIT_MS
      while (seen.size < COUNT && performance.now() < until) await sleep(LOOK_MS)
      isOver = true
      await watching
      assert.equal(seen.size, COUNT)
      const sorted = times.toSorted((a, b) => a - b)
      const at = (part: number): string => (sorted[Math.floor((COUNT - 1) * part)] ?? 0).toFixed(0)
      t.diagnostic(`${COUNT} pods: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${at(1)} ms`)
    })
  },
)
