// Records of packets over eBPF and nftables: the time at which a packet passed, and the names that its peer had then. The daemon reads
// records up to a second later. A name that is resolved meanwhile was not contacted, and `policy suggest` suggests nothing for it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFields, type Fields } from '../../../src/cli/fields.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { http } from '../../support/nodes/admin.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

/** Two names lead to each address. The client contacts one, and then resolves the other. */
const ADDRESSES = ['198.18.40.1', '198.18.40.2', '198.18.40.3', '198.18.40.4', '198.18.40.5']
const contacted = (i: number): string => `contacted${i}.shop.test`
const resolved = (i: number): string => `resolved${i}.other.test`
const NAMES = Object.fromEntries(
  ADDRESSES.flatMap((address, i) => [
    [contacted(i), [address]],
    [resolved(i), [address]],
  ]),
)
/** Connects under the first name, resolves the second, and continues the connection. */
const PROGRAM = `
dig +short @$1 $2 > /dev/null
exec 3<>/dev/tcp/$4/80
dig +short @$1 $3 > /dev/null
printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3
read -r line <&3
exec 3>&-`

const VARIANTS = [
  { title: 'ebpf', datapath: undefined, skip: canUseNamegate() },
  {
    title: 'nftables',
    datapath: '{ kind: nftables }',
    skip: canUseNamegate() ?? nftablesMaker.unavailable,
  },
] as const

for (const { title, datapath, skip } of VARIANTS) {
  describe(`packet records over ${title}`, { skip: skip ?? false }, () => {
    let lab: PodLab
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      namegate = new Namegate(lab, {
        policies: {},
        endpoints: [
          '{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }',
        ],
        config: 'default-egress: audit',
        ...(datapath === undefined ? {} : { datapath }),
      })
      await Promise.all([lab.startNameServer({ names: NAMES }), lab.startWebServer([80])])
      await namegate.start(datapath === undefined ? {} : { attached: [] })
      await until('the endpoint is audited', async () =>
        JSON.stringify(await namegate.get('endpoints')).includes('pod1'),
      )
    })

    after(async () => {
      await namegate.close()
      await lab.close()
    })

    async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
      for (const late = performance.now() + 15_000; !(await isSo()); await sleep(50)) {
        assert.ok(performance.now() < late, `expected ${what}`)
      }
    }

    async function lines(path: string): Promise<readonly Fields[]> {
      const socket = { socketPath: join(namegate.folder, 'admin.sock') }
      const { text } = await http(socket, path)
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line): unknown => JSON.parse(line))
        .filter(isFields)
    }

    async function audited(address: string): Promise<readonly Fields[]> {
      return (await lines('/v1/flows')).filter(
        ({ kind, peer }) => kind === 'audit' && peer === address,
      )
    }

    it('have the names from the time at which the flow began, so suggest lists only contacted names', async () => {
      const pod = lab.pods[0]!
      for (const [i, address] of ADDRESSES.entries()) {
        // The next read finds no records, so the read after it is a second away.
        await sleep(1100)
        const args = ['-c', PROGRAM, 'pod', pod.gateway4, contacted(i), resolved(i), address]
        const { code, stderr } = await pod.host.run('bash', args)
        assert.equal(code, 0, stderr)
      }
      for (const [i, address] of ADDRESSES.entries()) {
        await until(`a record of ${address}`, async () => (await audited(address)).length > 0)
        for (const { names } of await audited(address)) assert.deepEqual(names, [contacted(i)])
      }
      const { stdout, stderr, code } = await namegate.run(
        'policy',
        'suggest',
        '--format',
        'allow-list',
      )
      assert.equal(code, 0, stderr)
      const allowed = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      assert.deepEqual(
        allowed.toSorted(),
        ADDRESSES.map((_, i) => `${contacted(i)}:80/tcp`),
        stdout,
      )
    })
  })
}
