// The units in deploy/systemd have exactly the capabilities that their mode needs. With them, the daemon serves, fences and intercepts.
// Without any one of them, the daemon does not serve the pod.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const skip = canUseNamegate()
const COMMAND = fileURLToPath(new URL('../../../bin/namegate', import.meta.url))

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: web }
spec:
  endpointSelector: { matchLabels: { app: a } }
  egress:
    - toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchPattern: '*' }] } }]
    - toFQDNs: [{ matchName: a.example }]
`

/** The capabilities of a unit and a drop-in. systemd adds them up. */
function capabilitiesOf(dropIn: string): readonly string[] {
  const texts = ['namegate.service', `namegate.service.d/${dropIn}`].map((file) =>
    readFileSync(`deploy/systemd/${file}`, 'utf8'),
  )
  const lines = texts.flatMap((text) => [...text.matchAll(/^CapabilityBoundingSet=(.+)$/gm)])
  return lines.flatMap(([, names = '']) => names.toLowerCase().split(' '))
}

interface Row {
  readonly dropIn: string
  readonly listener: string
  /** The server that the pod asks. */
  readonly server: string
  /**
   * One of these is enough here. `cap_net_raw` alone costs more; `cap_net_bind_service` alone fails where a resolver listens on port 53.
   */
  readonly eitherOf: readonly string[]
}

/**
 * On kernel 6.18 the daemon serves without this capability, because the verifier accepts the programs for interfaces. But the kernel then
 * adds its barriers against speculation to every program, which makes each packet slower. So the units keep it.
 */
const SPEED = 'cap_perfmon'

const ROWS: readonly Row[] = [
  {
    dropIn: 'explicit.conf',
    listener: "listeners: [{ address: '10.20.1.1', port: 53, mode: explicit }]",
    server: '10.20.1.1',
    eitherOf: [],
  },
  {
    dropIn: 'tproxy.conf',
    listener: 'listeners: [{ port: 10053, mode: tproxy }]\nintercept: { on-start: true }',
    server: '10.96.0.10',
    eitherOf: ['cap_net_bind_service', 'cap_net_raw'],
  },
]

describe('the units of deploy/systemd', { skip }, () => {
  let lab: PodLab
  let lastWords = ''
  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: { 'a.example': ['198.18.0.1'] } })
  })
  after(async () => await lab.close())

  /** True if a daemon with only these capabilities starts, and the pod gets its answer. */
  async function serves({ listener, server }: Row, names: readonly string[]): Promise<boolean> {
    const namegate = new Namegate(lab, {
      policies: { 'web.yaml': POLICY },
      endpoints: ['{ name: pod1, addresses: [10.20.1.2], labels: { app: a }, interface: lxc1 }'],
    })
    const text = readFileSync(namegate.configFile, 'utf8')
    const ours = text.replace(/listeners:\n(  - .+\n)+/, `${listener}\n`)
    assert.ok(ours.includes(listener))
    writeFileSync(namegate.configFile, ours)
    const set = ['-all', ...names.map((name) => name.replace('cap_', '+'))].join(',')
    const args = ['--bounding-set', set, COMMAND, 'run', '--config', namegate.configFile]
    const daemon = lab.node.start('setpriv', args)
    try {
      for (const end = performance.now() + 20_000; daemon.running; await sleep(50)) {
        assert.ok(performance.now() < end, `it neither serves nor ends\n${daemon.stderr}`)
        if (!daemon.stderr.includes('namegate serves')) continue
        const { stdout } = await lab.pods[0]!.host.run('dig', [
          ...['+tries=2', '+time=1', '+short', `@${server}`, 'a.example'],
        ])
        return stdout === '198.18.0.1\n'
      }
      lastWords = daemon.stderr
      return false
    } finally {
      await daemon.stop()
      await namegate.run('intercept', 'down')
      await namegate.close()
    }
  }

  for (const row of ROWS) {
    const all = capabilitiesOf(row.dropIn)
    it(`with ${row.dropIn} keep what the daemon needs: ${all.join(' ')}`, async () => {
      assert.ok(await serves(row, all), lastWords)
      const { eitherOf } = row
      assert.ok(all.includes(SPEED))
      for (const one of all.filter((name) => name !== SPEED && !eitherOf.includes(name))) {
        const rest = all.filter((name) => name !== one)
        assert.equal(await serves(row, rest), false, `it serves without ${one}`)
      }
      if (eitherOf.length === 0) return
      const neither = all.filter((name) => !eitherOf.includes(name))
      assert.equal(await serves(row, neither), false, `it serves without ${eitherOf.join(', ')}`)
    })
  }
})
