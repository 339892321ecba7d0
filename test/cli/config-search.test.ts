// Where commands look for the configuration and the socket when several places name one, with the real program; and the folder to which
// paths in a configuration are relative.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { mkFolder } from '../support/nodes/daemon-files.ts'
import { loadConfig } from '../../src/config/load.ts'
import { DaemonFolder, PROGRAM } from '../support/nodes/daemon-process.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { run, type Output } from '../support/labs/lab-process.ts'

/** Variables of the machine for which Node.js warns, because their files are in the hidden /etc. */
const NO_CERTIFICATES = { NODE_EXTRA_CA_CERTS: '', XDG_RUNTIME_DIR: '' }
const ETC = '/etc/namegate/namegate.yaml'
const folder = new DaemonFolder({})
after(() => folder.remove())
// No daemon runs at any of them, so the error names the one that was tried.
for (const name of ['option', 'variable', 'config/namegate']) {
  folder.write(`${name}.yaml`, `admin: { socket: ${name.replace('/', '-')}.sock }\n`)
}
mkdirSync(folder.in('elsewhere'))

interface Row {
  readonly why: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The error names the socket, and why it was chosen. */
  readonly socket: string
  readonly named?: string
}

const CONFIG = folder.in('variable.yaml')
const ROWS: readonly Row[] = [
  {
    why: '--socket is first of all',
    args: ['--socket', 'given.sock', '--config', 'option.yaml'],
    env: { NAMEGATE_SOCKET: '/no/variable.sock', NAMEGATE_CONFIG: CONFIG },
    socket: 'given.sock: there is no such socket',
  },
  {
    why: '$NAMEGATE_SOCKET is before every configuration',
    args: ['--config', 'option.yaml'],
    env: { NAMEGATE_SOCKET: '/no/variable.sock', NAMEGATE_CONFIG: CONFIG },
    socket: '/no/variable.sock',
    named: '(the socket of $NAMEGATE_SOCKET)',
  },
  {
    why: '--config is the first configuration',
    args: ['--config', 'option.yaml'],
    env: { NAMEGATE_CONFIG: CONFIG },
    socket: 'option.sock',
    named: '(the socket of option.yaml)',
  },
  {
    why: '$NAMEGATE_CONFIG is before the working directory',
    env: { NAMEGATE_CONFIG: CONFIG },
    socket: folder.in('variable.sock'),
    named: `(the socket of ${CONFIG})`,
  },
  {
    why: 'config/namegate.yaml is before /etc, and a trap unless the error names it',
    socket: 'config/config-namegate.sock',
    named: '(the socket of config/namegate.yaml)',
  },
  {
    why: 'empty variables are none',
    env: { NAMEGATE_CONFIG: '', NAMEGATE_SOCKET: '' },
    socket: 'config/config-namegate.sock',
    named: '(the socket of config/namegate.yaml)',
  },
  {
    why: 'without any configuration it is where the units have it',
    cwd: 'elsewhere',
    socket: '/run/namegate/admin.sock',
  },
]

async function status(row: Pick<Row, 'args' | 'env' | 'cwd'>): Promise<Output> {
  const { args = [], env = {}, cwd = '.' } = row
  // An /etc of its own, so that namegate on this machine and notes of other daemons change nothing.
  const inside =
    'mount -t tmpfs tmpfs /etc && mkdir -p /run/namegate && mount -t tmpfs tmpfs /run/namegate && exec "$@"'
  const command = [PROGRAM, 'status', ...args]
  const unshared = ['unshare', '--mount', 'sh', '-c', inside, 'sh', ...command]
  const [program = '', ...rest] = process.getuid?.() === 0 ? unshared : command
  return await run(program, rest, {
    cwd: folder.in(cwd),
    env: { ...NO_CERTIFICATES, ...env },
    limitMs: 30_000,
  })
}

for (const { why, socket, named, ...row } of ROWS) {
  test(`namegate finds the daemon: ${why}`, async () => {
    const { code, stderr } = await status(row)
    assert.equal(code, 3, stderr)
    assert.match(stderr, /^namegate: No daemon at /)
    assert.ok(stderr.includes(`No daemon at ${socket}`), stderr)
    if (named !== undefined) assert.ok(stderr.includes(named), `${stderr} names ${named}`)
  })
}

test('namegate reads a configuration in /etc/namegate when there is no other', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root')
  const inside = `mkdir -p /run/namegate && mount -t tmpfs tmpfs /run/namegate && mount -t tmpfs tmpfs /etc && mkdir /etc/namegate && printf %s "$1" >${ETC} && shift && exec "$@"`
  const text = 'admin: { socket: here.sock }\n'
  const command = ['--mount', 'sh', '-c', inside, 'sh', text, PROGRAM, 'status']
  const { code, stderr } = await run('unshare', command, {
    cwd: '/',
    env: NO_CERTIFICATES,
    limitMs: 30_000,
  })
  assert.equal(code, 3)
  assert.ok(stderr.includes('No daemon at /etc/namegate/here.sock'), stderr)
  assert.ok(stderr.includes(ETC), stderr)
})

for (const args of [['--config', 'none.yaml'], []]) {
  test(`namegate refuses a missing configuration: ${args.join(' ')}`, async () => {
    const env = args.length > 0 ? {} : { NAMEGATE_CONFIG: 'none.yaml' }
    const { code, stderr } = await status({ args, env })
    assert.equal(code, 2)
    assert.match(stderr, /^none\.yaml:1:1: cannot read/)
  })
}

test('Paths in a configuration are relative to that file, and absolute ones as written', () => {
  const folder = mkFolder()
  const file = join(folder, 'sub/namegate.yaml')
  mkdirSync(dirname(file))
  const text = (prefix: string): string => `
policies: { paths: [${prefix}p, ${prefix}q/r] }
endpoints: { files: [${prefix}e.yaml] }
resources: { files: [${prefix}r.yaml] }
state: { directory: ${prefix}state }
admin: { socket: ${prefix}a.sock }
datapath: { kind: ebpf, ebpf: { pin-path: ${prefix}pins } }
`
  const pathsIn = (config: ReturnType<typeof loadConfig>): readonly (string | undefined)[] => [
    ...config.policies.paths.map(({ path }) => path),
    ...config.endpoints.files.map(({ path }) => path),
    ...config.resources.files.map(({ path }) => path),
    config.state.directory,
    config.admin.socket,
    config.datapath.pinPath,
  ]
  const names = ['p', 'q/r', 'e.yaml', 'r.yaml', 'state', 'a.sock', 'pins']
  for (const [why, prefix, base] of [
    ['as written', '', dirname(file)],
    ['from the folder above', '../', folder],
    ['absolute', '/opt/x/', '/opt/x'],
  ] as const) {
    writeFileSync(file, text(prefix))
    assert.deepEqual(
      pathsIn(loadConfig(file)),
      names.map((name) => join(base, name)),
      why,
    )
  }
  writeFileSync(file, '')
  const { policies, endpoints, state, admin } = loadConfig(file)
  assert.deepEqual(
    [policies.paths[0]?.path, endpoints.files[0]?.path, state.directory, admin.socket],
    ['policies', 'endpoints.yaml', 'var/state', 'var/run/admin.sock'].map((name) =>
      join(dirname(file), name),
    ),
    'defaults, too',
  )
})

test('A socket is refused whose path is too long once it is relative to its configuration', () => {
  const long = mkFolder()
  const file = join(long, 'd'.repeat(100), 'namegate.yaml')
  mkdirSync(dirname(file))
  writeFileSync(file, 'admin: { socket: a.sock }\n')
  assert.throws(
    () => loadConfig(file),
    /:1:18: admin\.socket: found a path of \d+ octets, expected at most 107/,
  )
})

test('A daemon with paths in its configuration is found and served from any folder', async () => {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
  }
  const installed = new DaemonFolder({ files })
  const config = installed.in('namegate.yaml')
  const daemon = await installed.serve()
  try {
    for (const args of [
      ['status'],
      ['get', 'policies'],
      ['datapath', 'verify'],
      ['policy', 'wait'],
    ]) {
      const { code, stderr } = await run(PROGRAM, [...args, '--config', config], {
        cwd: '/',
        limitMs: 30_000,
      })
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    }
    const other = await run(resolve('bin/namegate'), ['status'], {
      cwd: '/',
      env: { NAMEGATE_CONFIG: config },
      limitMs: 30_000,
    })
    assert.equal(other.code, 0, other.stderr)
  } finally {
    await daemon.process.stop()
    installed.remove()
  }
})
