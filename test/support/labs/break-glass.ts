// Runs the runbook docs/break-glass.md over one datapath. Reads its commands from the document, and runs them unchanged from /, on a node
// whose workload asks through TPROXY. The daemon serves, hangs or has ended. After each step, the tests try what passes.

import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { installedAt, installedPath } from './installed-host.ts'
import { DNS_4, podLab, type PodLab } from './lab-pod.ts'
import { Namegate } from './lab-namegate.ts'

const DOCUMENT = fileURLToPath(new URL('../../../docs/break-glass.md', import.meta.url))
/** The names of the pins in the document. */
const PINS = pinDirectory('/sys/fs/bpf/namegate')
const DENIED = '198.18.66.6'
const PORT = 80
const NAME = 'www.other.test'
const ENDPOINT =
  "{ name: shop-1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*.shop.test' }] } }]
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`

/** Blocks of commands by the word after `sh`. */
const BLOCKS: ReadonlyMap<string, string> = new Map(
  [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```sh ([a-z ]+)\n(.*?)^```$/gms)].map(
    ([, name = '', script = '']) => [name, script] as const,
  ),
)

export function breakGlassSuite(
  title: 'ebpf' | 'nftables',
  datapath: string | undefined,
  skip: string | false,
): void {
  describe(`break glass over ${title}`, { skip }, () => {
    const tried = new Set<string>()
    let lab: PodLab
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      namegate = new Namegate(lab, {
        policies: { 'shop.yaml': POLICY },
        endpoints: [ENDPOINT],
        listenerItems: ['{ port: 10053, mode: tproxy }'],
        config: 'intercept: { on-start: true }',
        ...(datapath === undefined ? {} : { datapath }),
      })
      writeCommands()
      await Promise.all([
        lab.startNameServer({ names: { [NAME]: [DENIED] } }),
        lab.startWebServer([PORT]),
      ])
      await namegate.start({ attached: [] })
      await until('enforcement', async () => !(await reaches()))
    })

    after(async () => {
      namegate.daemon.kill('SIGCONT')
      await namegate.close()
      await lab.close()
    })

    /** Writes commands in place of systemd: the test itself starts the daemon. */
    function writeCommands(): void {
      const file = join(namegate.folder, 'bin', 'systemctl')
      mkdirSync(dirname(file))
      const kill = `[ "$1 $2" = 'kill --signal=KILL' ] && exec kill -KILL "$DAEMON"`
      writeFileSync(
        file,
        `#!/bin/sh\n${kill}\ncase $1 in start | stop | restart) ;; *) exit 1 ;; esac\n`,
      )
      chmodSync(file, 0o755)
    }

    /** Runs a block of the document in the node. Every command of it must succeed. */
    async function runBlock(block: string): Promise<string> {
      tried.add(block)
      const script = BLOCKS.get(block)
      assert.ok(script !== undefined, `the document has a block ${block}`)
      const path = installedPath(join(namegate.folder, 'bin'))
      const pins = dirname(namegate.pin('ng_mode'))
      const [command = '', ...words] = installedAt(namegate.folder)
      const { code, stdout, stderr } = await lab.node.run(
        command,
        [...words, 'bash', '-c', `set -e\n${script.replace(PINS, pins)}`],
        { env: { PATH: path, NO_COLOR: '1', DAEMON: String(namegate.pid) }, limitMs: 60_000 },
      )
      assert.equal(code, 0, `${script}${stdout}${stderr}`)
      return stdout
    }

    async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
      for (const late = performance.now() + 20_000; !(await isSo()); await sleep(50)) {
        assert.ok(performance.now() < late, `expected ${what}`)
      }
    }

    /** The result of a question for a name that policy denies, such as `NOERROR`. */
    async function ask(): Promise<string> {
      const args = [`@${DNS_4}`, '+tries=1', '+time=2', NAME]
      const { stdout } = await lab.pods[0]!.host.run('dig', args)
      return /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
    }

    async function reaches(): Promise<boolean> {
      const connect = `exec 3<>/dev/tcp/${DENIED}/${PORT}`
      const { code } = await lab.pods[0]!.host.run('timeout', ['0.9', 'bash', '-c', connect])
      return code === 0
    }

    async function whatPasses(): Promise<readonly [dns: string, packets: boolean]> {
      return [await ask(), await reaches()]
    }

    it('shows refused queries and packets, with the policy that denies them', async () => {
      assert.deepEqual(await whatPasses(), ['REFUSED', false])
      await until('the records', async () => {
        const output = await runBlock('look')
        const drops = /dropped: policy by default\/shop \(.*shop\.yaml:6\)/.test(output)
        return drops && /denied by default\/shop \(.*shop\.yaml:6\)/.test(output)
      })
    })

    it('2: switches to audit and to bypass, and back', async () => {
      await runBlock('audit')
      assert.deepEqual(await whatPasses(), ['NOERROR', true])
      const output = await runBlock('audited')
      assert.match(output, /audit +shop-1 +A www\.other\.test audited by default\/shop/)
      assert.match(output, /audit: run time/)
      await runBlock('bypass')
      assert.deepEqual(await whatPasses(), ['NOERROR', true])
      await runBlock('back')
      assert.deepEqual(await whatPasses(), ['REFUSED', false])
      await runBlock('after')
    })

    it('3: restarts a hanging daemon', async () => {
      namegate.daemon.kill('SIGSTOP')
      assert.deepEqual(await whatPasses(), ['no answer', false])
      await runBlock('restart')
      await namegate.daemon.ended(10_000)
      assert.equal(await reaches(), false)
      await namegate.start({ attached: [] })
      await until('an answer', async () => (await ask()) === 'REFUSED')
    })

    it('3: opens kernel and DNS beside a hanging daemon, and closes both again', async () => {
      namegate.daemon.kill('SIGSTOP')
      await runBlock('open')
      assert.deepEqual(await whatPasses(), ['no answer', true])
      await runBlock('dns')
      assert.deepEqual(await whatPasses(), ['NOERROR', true])
      namegate.daemon.kill('SIGCONT')
      await runBlock('back')
      await until('policy', async () => (await ask()) === 'REFUSED' && !(await reaches()))
    })

    it('3: opens the kernel without the command, and removes everything at the end', async () => {
      await namegate.kill()
      assert.equal(await reaches(), false)
      await runBlock(`raw ${title}`)
      assert.equal(await reaches(), true)
      assert.match(
        await runBlock('detach'),
        /^detached: [^]*DNS is still intercepted and waits for a daemon: 'namegate intercept down' /,
      )
      assert.deepEqual(await whatPasses(), ['no answer', true])
      await runBlock('dns')
      assert.doesNotMatch(await runBlock('detach'), /intercepted/)
      assert.deepEqual(await whatPasses(), ['NOERROR', true])
    })

    it('ran every command of the document except those of the other datapath', () => {
      const other = title === 'ebpf' ? 'raw nftables' : 'raw ebpf'
      assert.deepEqual([...tried, other].sort(), [...BLOCKS.keys()].sort())
      const fences = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```/gm)].length
      assert.equal(fences, BLOCKS.size * 2, 'every block has a name')
    })
  })
}
