// namegate accepts what deploy/ contains: the documents parse, name the same image, command and paths, and their configurations pass
// `namegate config check`.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { nodeForm } from './packages/oci-forms.ts'
import { run } from './support/labs/lab-process.ts'
import { readManifest } from './support/labs/sidecar.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-deploy-'))
after(() => rmSync(folder, { recursive: true }))
// Files that users write beside a configuration. A daemon does not start without them.
mkdirSync(join(folder, 'policies'))
writeFileSync(join(folder, 'endpoints.yaml'), 'endpoints: []\n')

interface Manifest {
  readonly data?: Readonly<Record<string, string>>
}

const KUBERNETES = 'deploy/kubernetes'

async function namegate(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(resolve('bin/namegate'), args, { cwd: folder })
  return `${code} ${stdout}${stderr}`
}

/** Writes a configuration into a scratch folder in place of /etc/namegate, with its files beside it. */
function place(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text.replaceAll('/etc/namegate/', `${folder}/`))
  return path
}

test('deploy/kubernetes/base/daemonset.yaml runs the configuration of its own ConfigMap', () => {
  const { args, mounts } = nodeForm()
  assert.deepEqual(args, ['run', '--config', '/etc/namegate/namegate.yaml'])
  assert.deepEqual(mounts, ['/etc/namegate', '/var/lib/namegate', '/run/namegate', '/sys/fs/bpf'])
})

/** The changes of an overlay to the configuration of the base. */
const OVERLAYS: readonly (readonly [
  overlay: string,
  changed: readonly string[],
  reason: string,
])[] = [
  ['base', [], 'the usual form'],
  ['overlays/audit-first', ['unknown-clients', 'audit'], 'nothing is refused'],
  ['overlays/nodelocaldns', ['upstreams'], 'node-local-dns is not a pod'],
]

for (const [overlay, changed, reason] of OVERLAYS) {
  test(`deploy/kubernetes/${overlay} holds a configuration that namegate accepts: ${reason}`, async () => {
    const read = (folder: string): Record<string, unknown> =>
      parse(readFileSync(join(KUBERNETES, folder, 'namegate.yaml'), 'utf8')) as Record<
        string,
        unknown
      >
    const [base, config] = [read('base'), read(overlay)]
    const keys = [...new Set([...Object.keys(base), ...Object.keys(config)])]
    const differ = keys.filter((key) => JSON.stringify(base[key]) !== JSON.stringify(config[key]))
    assert.deepEqual(differ, changed)
    place('resources.yaml', readFileSync(join(KUBERNETES, 'base', 'resources.yaml'), 'utf8'))
    const text = readFileSync(join(KUBERNETES, overlay, 'namegate.yaml'), 'utf8')
    assert.match(await namegate('config', 'check', place('namegate.yaml', text)), /^0 /)
    // The defaults name files, which the ConfigMap does not have.
    const { policies, endpoints } = config
    assert.deepEqual([policies, endpoints], [{ paths: [] }, { files: [] }])
  })
}

test('deploy/kubernetes/overlays/sidecar/sidecar.yaml holds a configuration and a policy that namegate accepts', async () => {
  const sidecar = readManifest()
  for (const [name, text] of Object.entries(sidecar.data)) place(name, text)
  assert.match(await namegate('config', 'check', join(folder, 'namegate.yaml')), /^0 /)
  assert.match(await namegate('policy', 'check', join(folder, 'policy.yaml')), /^0 /)
  for (const { args = [], volumeMounts = [] } of sidecar.init) {
    assert.deepEqual(args.slice(-2), ['--config', '/etc/namegate/namegate.yaml'])
    assert.deepEqual(
      volumeMounts.map(({ mountPath }) => mountPath),
      ['/etc/namegate', '/run/namegate'],
    )
  }
})

/** The configurations in a text. Those of a manifest are in its ConfigMap. */
function configsIn(text: string): readonly unknown[] {
  return parseAllDocuments(text).flatMap((document) => {
    const value = document.toJS() as Record<string, unknown> | null
    if (value !== null && 'listeners' in value) return [value]
    const config = (value as Manifest | null)?.data?.['namegate.yaml']
    return config === undefined ? [] : [parse(config) as unknown]
  })
}

test('deploy/ closes an endpoint which no policy selects, except where Kubernetes leaves it open', () => {
  const defaults = readdirSync('deploy', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) =>
      configsIn(readFileSync(join('deploy', name), 'utf8')).map((config) => [
        name,
        (config as Record<string, unknown>)['default-egress'],
      ]),
    )
  const found = (value: string): readonly string[] =>
    defaults.filter(([, each]) => each === value).map(([name]) => String(name))
  assert.deepEqual(found('allow').toSorted(), [
    'kubernetes/base/namegate.yaml',
    'kubernetes/overlays/audit-first/namegate.yaml',
    'kubernetes/overlays/nodelocaldns/namegate.yaml',
  ])
  assert.equal(
    found('deny').length,
    6,
    'explicit, tproxy, dns-only, image, image-dns-only, sidecar',
  )
  assert.equal(defaults.length, 9)
})

for (const mode of ['explicit', 'tproxy', 'dns-only']) {
  test(`deploy/systemd/${mode}.yaml is a configuration that namegate accepts`, async () => {
    const path = place('unit.yaml', readFileSync(`deploy/systemd/${mode}.yaml`, 'utf8'))
    assert.match(await namegate('config', 'check', path), /^0 /)
  })
}

test('deploy/systemd/namegate.service starts the program with its configuration', () => {
  const unit = readFileSync('deploy/systemd/namegate.service', 'utf8')
  const start = '/opt/namegate/bin/namegate run --config /etc/namegate/namegate.yaml'
  assert.ok(unit.split('\n').includes(`ExecStart=${start}`))
})

test('deploy/systemd/namegate-early.service closes workloads before the network is up and the daemon starts', () => {
  const unit = readFileSync('deploy/systemd/namegate-early.service', 'utf8').split('\n')
  const close = '/opt/namegate/bin/namegate datapath close --config /etc/namegate/namegate.yaml'
  const wanted: readonly (readonly [line: string, reason: string])[] = [
    [`ExecStart=${close}`, 'the purpose of the unit'],
    ['Type=oneshot', 'units after it wait for its end'],
    ['DefaultDependencies=no', 'the defaults would order it after sysinit.target'],
    ['Wants=network-pre.target', 'perhaps no other unit wants this target'],
    ['Before=network-pre.target namegate.service shutdown.target', 'the order'],
    ['After=local-fs.target nftables.service', 'nftables.service flushes the ruleset'],
    ['StateDirectory=namegate', 'the records of the last daemon, as in namegate.service'],
  ]
  for (const [line, reason] of wanted) assert.ok(unit.includes(line), `${line}: ${reason}`)
})

test('deploy/systemd/ holds units that systemd accepts', { skip: verifySkip() }, async () => {
  for (const kind of ['namegate.service.d', 'namegate.socket.d']) mkdirSync(join(folder, kind))
  for (const name of readdirSync('deploy/systemd', { recursive: true, encoding: 'utf8' })) {
    if (!/\.(service|socket|conf)$/.test(name)) continue
    const text = readFileSync(`deploy/systemd/${name}`, 'utf8')
    writeFileSync(join(folder, name), text.replaceAll('/opt/namegate', process.cwd()))
  }
  const units = ['./namegate.service', './namegate.socket', './namegate-early.service']
  const { code, stderr } = await run('systemd-analyze', ['verify', ...units], { cwd: folder })
  // Warnings about the machine's own units do not count.
  const ours = stderr.split('\n').filter((line) => line.includes('namegate'))
  assert.deepEqual([code, ours], [0, []])
})

/** The bounds for `systemd-analyze security`, of 10. docs/hardening.md has the figures. */
const EXPOSURES: readonly (readonly [unit: string, dropIns: readonly string[], atMost: number])[] =
  [
    ['namegate.service', ['explicit.conf', 'page.conf'], 2.2],
    ['namegate.service', ['tproxy.conf', 'take-over.conf', 'open-on-exit.conf'], 2.2],
    ['namegate.service', ['dns-only.conf', 'page.conf'], 1.5],
    ['namegate-early.service', [], 2.2],
  ]

for (const [unit, dropIns, atMost] of EXPOSURES) {
  const form = [unit, ...dropIns].join(' with ')
  test(
    `deploy/systemd/ exposes at most ${atMost} of 10: ${form}`,
    { skip: verifySkip() },
    async (t) => {
      const root = mkdtempSync(join(folder, 'root-'))
      const units = join(root, 'etc/systemd/system')
      mkdirSync(join(units, `${unit}.d`), { recursive: true })
      for (const name of [unit, ...dropIns.map((each) => `${unit}.d/${each}`)]) {
        cpSync(`deploy/systemd/${name}`, join(units, name))
      }
      const args = ['security', '--offline=true', `--root=${root}`, '--no-pager', unit]
      const { stdout, stderr } = await run('systemd-analyze', args, { limitMs: 60_000 })
      if (/unrecognized option|invalid option/.test(stderr)) {
        return t.skip('systemd is older than 250')
      }
      const [, level] = /exposure level for \S+: ([\d.]+)/.exec(stdout) ?? []
      assert.ok(Number(level) <= atMost, `${level}\n${stdout}${stderr}`)
      // An unknown setting of systemd restricts nothing.
      assert.doesNotMatch(stderr, /Unknown|Failed to parse|ignoring/i)
    },
  )
}

test('deploy/systemd/namegate-early.service has the restrictions of namegate.service', () => {
  const restrictions = (unit: string): readonly string[] => {
    const text = readFileSync(`deploy/systemd/${unit}`, 'utf8')
    const after = text.slice(text.indexOf('CapabilityBoundingSet='), text.indexOf('[Install]'))
    return after.split('\n').filter((line) => /^[A-Z]\w+=/.test(line) && line !== 'PrivateTmp=yes')
  }
  const early = restrictions('namegate-early.service')
  assert.ok(early.length > 20, 'the restrictions were found')
  assert.deepEqual(early, restrictions('namegate.service'))
})

test('deploy/systemd/ binds the addresses that its configurations listen on', () => {
  const socket = readFileSync('deploy/systemd/namegate.socket', 'utf8')
  const explicit = readFileSync('deploy/systemd/explicit.yaml', 'utf8')
  assert.match(explicit, /address: 127\.0\.0\.1, port: 53/)
  for (const key of ['ListenDatagram', 'ListenStream']) {
    assert.match(socket, new RegExp(`^${key}=127\\.0\\.0\\.1:53$`, 'm'))
  }
  const tproxy = readFileSync('deploy/systemd/namegate.socket.d/tproxy.conf', 'utf8')
  assert.match(readFileSync('deploy/systemd/tproxy.yaml', 'utf8'), /port: 10053, mode: tproxy/)
  assert.equal(tproxy.split(':10053').length - 1, 4)
})

function verifySkip(): string | false {
  return existsSync('/usr/bin/systemd-analyze') ? false : 'systemd-analyze is not installed'
}

test('README.md shows configurations that namegate accepts', async () => {
  const blocks = [...readFileSync('README.md', 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
  assert.ok(blocks.length > 0)
  for (const [, text = ''] of blocks) {
    assert.match(await namegate('config', 'check', place('readme.yaml', text)), /^0 /, text)
  }
})

test('Dockerfile makes an image whose `docker run` line works as written', async () => {
  const text = readFileSync('Dockerfile', 'utf8')
  const [, line = ''] = /^# {3}docker run ((?:.*\\\n#)*.*)/m.exec(text) ?? []
  const options = line.replaceAll(/\\\n#/g, ' ')
  // Config, policies and endpoints are in the image, in the folders that the command reads.
  const etc = join(folder, 'image')
  for (const [, from = '', to = ''] of text.matchAll(/^COPY (?!--)(\S+) (\/etc\/namegate\S*)$/gm)) {
    cpSync(from, join(etc, to.endsWith('/') ? basename(from) : to.replace('/etc/namegate', '')), {
      recursive: true,
    })
  }
  const checked = await namegate('config', 'check', join(etc, 'namegate.yaml'))
  assert.match(checked, /^0 /)
  assert.match(text, /^CMD \["run", "--config", "\/etc\/namegate\/namegate.yaml"\]$/m)
  const config = parse(readFileSync(join(etc, 'namegate.yaml'), 'utf8')) as {
    datapath: { kind: string }
    policies: { paths: readonly string[] }
    endpoints: { files: readonly string[] }
    state: { directory: string }
    admin: { socket: string }
  }
  for (const path of [...config.policies.paths, ...config.endpoints.files]) {
    assert.ok(existsSync(join(etc, path)), `${path} is in the image`)
  }
  assert.match(await namegate('policy', 'check', '--config', join(etc, 'namegate.yaml')), /^0 /)
  const given = (option: string): readonly string[] =>
    [...options.matchAll(new RegExp(`${option} (\\S+)`, 'g'))].map(([, value = '']) => value)
  assert.deepEqual(
    given('--cap-add').toSorted(),
    ['BPF', 'NET_ADMIN', 'PERFMON'],
    config.datapath.kind,
  )
  const mounts = given('-v').map((mount) => mount.split(':')[1])
  for (const path of ['/sys/fs/bpf', config.state.directory, dirname(config.admin.socket)]) {
    assert.ok(mounts.includes(path), `${path} outlives the container`)
  }
})

test('Dockerfile copies only existing files', () => {
  const text = readFileSync('Dockerfile', 'utf8')
  for (const [, from = ''] of text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const path of from.split(' ')) assert.ok(existsSync(path), path)
  }
})
