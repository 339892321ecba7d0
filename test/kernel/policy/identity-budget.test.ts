// docs/spec/semantics 3, "At the bound", on the kernel. An attacker that chooses its names uses up its identities. It reaches no denied
// address by an allowed name, with or without a number for it, and its neighbour loses nothing.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { startEcho } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
const PORT = 7000
const PER_ENDPOINT = 8
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f']
const ATTACK = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: attack }
spec:
  endpointSelector: { matchLabels: { app: attacker } }
  egress:
    - toFQDNs: [{ matchPattern: '*.a.test' }]
${LETTERS.map((letter) => `    - toFQDNs: [{ matchPattern: '*${letter}*.a.test' }]`).join('\n')}
  egressDeny: [{ toCIDR: [198.51.100.0/24] }]
`

function shop(pattern: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '${pattern}' }] }]
`
}

/** Every set of letters is another set of selectors. Every fourth name leads to a denied address. */
const ATTACKS = Array.from({ length: 40 }, (_, i) => {
  const name = LETTERS.filter((_letter, bit) => ((i + 1) >> bit) & 1).join('')
  return { name: `${name}.a.test`, address: i % 4 === 3 ? `198.51.100.${i}` : `198.18.60.${i}` }
})
const INSIDE = { name: 'z.a.test', address: '198.51.100.7' }
const NEW = { name: 'new.b.test', address: '198.18.61.1' }
const EDITED = { name: 'pay.c.test', address: '198.18.61.2' }
const ALL = [...ATTACKS, INSIDE, NEW, EDITED]

for (const kind of ['ebpf', 'nftables'] as const) {
  describe(`an attacker out of identities, ${kind}`, { skip, timeout: 280_000 }, () => {
    let lab: PodLab
    let namegate: Namegate
    before(async () => {
      lab = podLab({ pods: 2 })
      lab.internet.ip('route', 'add', 'local', '198.51.100.0/24', 'dev', 'lo')
      namegate = new Namegate(lab, {
        policies: { 'attack.yaml': ATTACK, 'shop.yaml': shop('*.b.test') },
        endpoints: ['attacker', 'shop'].map(
          (app, i) =>
            `{ name: pod${i + 1}, addresses: [10.20.${i + 1}.2], labels: { app: ${app} }, interface: lxc${i + 1} }`,
        ),
        config: `limits: { dynamic-identities-per-endpoint: ${PER_ENDPOINT} }`,
        ...(kind === 'nftables' ? { datapath: '{ kind: nftables }' } : {}),
      })
      const names = Object.fromEntries(ALL.map(({ name, address }) => [name, [address]]))
      await Promise.all([lab.startNameServer({ names }), startEcho(lab.internet, PORT)])
      await namegate.start(kind === 'nftables' ? { attached: [] } : {})
      const asked = await ask(0, ...ATTACKS.map(({ name }) => name))
      assert.ok(asked.includes('198.18.60.0'), asked)
    })
    after(async () => {
      await namegate.close()
      await lab.close()
    })

    async function ask(pod: number, ...names: readonly string[]): Promise<string> {
      const { host, gateway4 } = lab.pods[pod]!
      const { stdout } = await host.run('dig', ['+short', '+tries=1', `@${gateway4}`, ...names])
      return stdout
    }

    async function connects(pod: number, address: string): Promise<boolean> {
      const attempt = `exec 3<>/dev/tcp/${address}/${PORT}`
      const { code } = await lab.pods[pod]!.host.run('timeout', ['2', 'bash', '-c', attempt])
      return code === 0
    }

    async function used(): Promise<number> {
      const { limits } = (await namegate.status()) as {
        limits: readonly { limit: string; use: number }[]
      }
      const name = 'dynamic-identities-per-endpoint'
      return limits.find(({ limit }) => limit === name)?.use ?? -1
    }

    it('has used up its own budget', async () => {
      assert.equal(await used(), PER_ENDPOINT)
    })

    it('reaches no denied address by any name', async () => {
      const answer = await ask(0, INSIDE.name)
      for (const { address } of [INSIDE, ...ATTACKS.filter((_, i) => i % 16 === 3)]) {
        assert.equal(await connects(0, address), false, `${address}; answered: ${answer}`)
      }
    })

    it('takes nothing from another endpoint, whose policy is edited meanwhile', async () => {
      assert.equal((await ask(1, NEW.name)).trim(), NEW.address)
      assert.equal(await connects(1, NEW.address), true)
      namegate.writePolicies({ 'attack.yaml': ATTACK, 'shop.yaml': shop('*.c.test') })
      const { host, gateway4 } = lab.pods[1]!
      const isIn = `until dig +short +tries=1 @${gateway4} ${EDITED.name} | grep -q ${EDITED.address}; do sleep 0.1; done`
      const { code } = await host.run('timeout', ['20', 'bash', '-c', isIn])
      assert.equal(code, 0, 'the edited policy is in force')
      assert.equal(await connects(1, EDITED.address), true)
      assert.equal(await connects(1, INSIDE.address), false)
      assert.equal(await connects(0, EDITED.address), false)
    })

    it('would reach the address without the deny rule', async () => {
      await namegate.run('datapath', 'mode', 'bypass')
      assert.equal(await connects(0, INSIDE.address), true, 'bypass opens it, so the test can fail')
    })
  })
}
