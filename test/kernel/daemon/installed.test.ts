// Runs every command of the documents and of the alerts' descriptions as written, in / of a host where namegate is installed and runs.
// docs/break-glass.md, docs/rollout.md and docs/resources.md have tests of their own, which check the effect of each step.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { installedAt, installedPath } from '../../support/labs/installed-host.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const skip = canUseNamegate() ?? false

/** Documents whose commands other tests run, or no test, with the reason. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['break-glass.md', 'test/support/labs/break-glass.ts'],
  ['rollout.md', 'test/kernel/policy/rollout.test.ts'],
  ['resources.md', 'test/daemon/resources-docs.test.ts'],
  ['exec.md', 'sandboxes of programs that only a reader has'],
  [
    'install.md',
    'installs: test/package.test.ts, test/cli/commands/init.test.ts, test/kernel/daemon/up.test.ts',
  ],
  ['install-deb.md', 'installs: test/packages/deb.packages.ts'],
  ['install-npm.md', 'installs: test/package.test.ts, and npm run packages -- npm'],
  ['image.md', 'takes Docker: npm run packages -- oci runs the image as its commands say'],
  [
    'api.md',
    'examples: test/admin/document/api-examples.test.ts; requests: api-contract.test.ts there',
  ],
  ['page.md', 'takes a browser and a second machine: test/admin/page'],
  ['cni.md', 'changes the network plugins of a node: test/cli/commands/cni.test.ts'],
  ['kubernetes.md', 'takes a cluster: test/kernel/kubernetes/'],
  ['sidecar.md', 'of a pod, not of a host: test/kernel/daemon/sidecar.test.ts'],
])
/** Commands that this test does not run, with the reason. */
const NOT_RUN: ReadonlyMap<string, string> = new Map([
  ['namegate completion bash > /etc/bash_completion.d/namegate', 'writes to the machine'],
  [
    'namegate completion zsh > /usr/local/share/zsh/site-functions/_namegate',
    'writes to the machine',
  ],
  ['namegate completion fish > /etc/fish/completions/namegate.fish', 'writes to the machine'],
  ['namegate help --man > /usr/local/share/man/man1/namegate.1', 'writes to the machine'],
  [
    'namegate help --man namegate.yaml > /usr/local/share/man/man5/namegate.yaml.5',
    'writes to the machine',
  ],
  ['namegate flows --follow --verdict deny', 'does not end: test/cli/commands/flows.test.ts'],
  ['namegate flows -o json --verdict drop | jq -r .peer | sort | uniq -c', 'jq may be missing'],
  [
    'namegate get identities --name www.example.com --watch',
    'does not end: test/cli/commands/get.test.ts',
  ],
  ['ln -sf /opt/namegate/bin/namegate /usr/local/bin/namegate', 'changes the machine'],
  [
    'namegate run --config /etc/namegate/namegate.yaml --take-over',
    'does not end: test/handover/take-over.test.ts',
  ],
])
/** Commands that change nothing. Each runs once, however many alerts and documents name it. */
const READS =
  /^namegate (?:status|get|flows|doctor|explain|config|policy|datapath verify)\b[^|>&]*$/
/** Exit codes of commands whose answer is no. */
const CODES: ReadonlyMap<string, number> = new Map([
  ['cd /opt/namegate && namegate policy lint docs/examples/doubtful.yaml', 1],
])

interface Alert {
  readonly alert: string
  readonly annotations: Readonly<Record<string, string>>
}

/** Blocks of commands, with the place of each. Blocks that end the daemon are last. */
function blocks(): readonly (readonly [where: string, script: string])[] {
  const files = readdirSync('docs').filter((file) => file.endsWith('.md') && !ELSEWHERE.has(file))
  const found = files.flatMap((file) => {
    const text = readFileSync(join('docs', file), 'utf8')
    const all = [...text.matchAll(/^```sh.*\n([^]*?)^```$/gm)]
    return all.map(([, script = ''], i) => [`docs/${file} ${i + 1}`, script] as const)
  })
  const { groups } = parse(readFileSync('deploy/prometheus/alerts.yml', 'utf8')) as {
    groups: readonly { readonly rules: readonly Alert[] }[]
  }
  const alerts = groups.flatMap(({ rules }) =>
    rules.map(({ alert, annotations: { description = '' } }) => {
      const commands = [...description.matchAll(/`([^`]+ [^`]+)`/g)].map(([, line]) => line)
      assert.ok(commands.length > 0, `${alert} names a command`)
      return [`alert ${alert}`, commands.join('\n')] as const
    }),
  )
  const ends = (script: string): number => (script.includes('datapath detach') ? 1 : 0)
  return [...alerts, ...found].toSorted(([, a], [, b]) => ends(a) - ends(b))
}

describe('commands of the documents on an installed host', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let stubs = ''
  const read = new Set<string>()

  before(async () => {
    lab = podLab()
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [
        "{ name: shop-1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
      ],
      listenerItems: ['{ port: 10053, mode: tproxy }'],
      config: 'intercept: { on-start: true }',
    })
    stubs = join(namegate.folder, 'bin')
    mkdirSync(stubs)
    // The test starts the daemon. test/kernel/daemon/systemd-service.test.ts runs it under a systemd.
    for (const name of ['systemctl', 'journalctl']) {
      writeFileSync(join(stubs, name), '#!/bin/sh\n', { mode: 0o755 })
    }
    await lab.startNameServer({ names: { 'www.shop.test': ['198.18.1.1'] } })
    await namegate.start()
  })

  after(async () => {
    await namegate.close()
    await lab.close()
  })

  for (const [where, script] of blocks()) {
    it(`${where} works as written`, async () => {
      let folder = '/'
      for (const line of script.split('\n')) {
        const command = line.replace(/ {2,}#.*$/, '').trim()
        if (command === '' || NOT_RUN.has(command)) continue
        if (/^cd \S+$/.test(command)) {
          folder = command.slice(3)
          continue
        }
        if (READS.test(command) && read.size === read.add(`${folder} ${command}`).size) continue
        const [program = '', ...words] = installedAt(namegate.folder)
        const { code, stdout, stderr } = await lab.node.run(
          program,
          [...words, 'bash', '-c', `cd ${folder} && ${command}`],
          { env: { PATH: installedPath(stubs), NO_COLOR: '1' }, limitMs: 60_000 },
        )
        assert.equal(code, CODES.get(command) ?? 0, `${command}\n${stdout}${stderr}`)
        assert.doesNotMatch(stderr, /No daemon|cannot find|not found|no such file/i, command)
      }
    })
  }

  it('leaves only existing documents to other tests', () => {
    for (const file of ELSEWHERE.keys()) assert.ok(readdirSync('docs').includes(file), file)
  })
})
