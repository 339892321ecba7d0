// A checkout without some or all of the native part: the daemon and the library refuse to start with the packages to install, and commands
// that open no socket of the proxy work.

import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { nativeFile } from '../../src/native/native-files.ts'
import type { Output } from '../support/labs/lab-process.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder } from '../support/nodes/daemon-process.ts'
import { nativeIsLacking } from '../support/open-sockets.ts'
import { answering, FakeUpstream } from '../support/peers/upstream.ts'

const skip = existsSync('dist/src/library.js')
  ? nativeIsLacking()
  : 'dist/ is not built: npm run build'
const COMPILER = 'apt-get install gcc libc6-dev libuv1-dev, then npm run build'

let folder: DaemonFolder
let program: string

before(() => {
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['a.example']),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    },
  })
  const tree = folder.in('tree')
  mkdirSync(tree)
  for (const each of ['bin', 'dist', 'package.json']) {
    cpSync(each, join(tree, each), { recursive: true })
  }
  symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
  program = join(tree, 'bin/namegate')
})

after(() => folder.remove())

/** Leaves only these addons in the tree. */
function build(...addons: readonly string[]): void {
  const built = folder.in('tree/build/Release')
  rmSync(built, { recursive: true, force: true })
  mkdirSync(built, { recursive: true })
  for (const each of addons) cpSync(nativeFile(`${each}.node`), join(built, `${each}.node`))
}

async function namegate(...args: readonly string[]): Promise<Output> {
  return await folder.run(program, ...args, '--config', 'namegate.yaml')
}

/** Checks for one line of the program itself, besides lines of the log. */
function assertRefused({ code, stderr }: Output, line: string): void {
  const own = stderr.split('\n').filter((each) => each !== '' && !/^[[{]/.test(each))
  assert.deepEqual([code, own], [3, [`namegate: ${line}`]], stderr)
}

describe('namegate run', { skip }, () => {
  const ROWS = [
    ['nothing is built', [], 'memory', `posix: it is not built: ${COMPILER}`],
    ['tcp is not built', ['posix', 'udp'], 'memory', `tcp: it is not built: ${COMPILER}`],
    ['udp is not built', ['posix', 'tcp'], 'memory', `udp: it is not built: ${COMPILER}`],
    [
      'the config wants eBPF and it is not built',
      ['posix', 'tcp', 'udp'],
      'ebpf',
      'bpf: it is not built: apt-get install gcc libc6-dev clang libbpf-dev, then npm run build',
    ],
  ] as const
  for (const [why, addons, kind, line] of ROWS) {
    test(`exits 3 when ${why}, and names the packages to install`, async () => {
      build(...addons)
      const pinPath = `/sys/fs/bpf/ng-test-not-built-${process.pid}`
      folder.configure({ datapath: `{ kind: ${kind}, ebpf: { pin-path: ${pinPath} } }` })
      assertRefused(await namegate('run'), `Cannot load native part ${line}`)
      assert.equal(existsSync(pinPath), false, 'a start that was refused leaves no folder')
    })
  }

  test('exits 3 when an addon does not load, with the reason', async () => {
    build('posix', 'tcp', 'udp')
    folder.configure({})
    const file = folder.in('tree/build/Release/udp.node')
    writeFileSync(file, 'no addon')
    assertRefused(
      await namegate('run'),
      `Cannot load native part udp: ${file}: file too short: ${COMPILER}`,
    )
  })
})

test(
  'createGate rejects with UnavailableError when the native part is not built',
  { skip },
  async () => {
    build()
    const library = JSON.stringify(folder.in('tree/dist/src/library.js'))
    const script = `
    const { createGate, UnavailableError } = await import(${library})
    const config = { listeners: [{ address: '127.0.0.1', port: 0 }], upstreams: { servers: ['192.0.2.53:53'] } }
    await createGate({ config }).catch((error) => console.log(error instanceof UnavailableError, error.message))`
    const { stdout, stderr } = await folder.run(
      process.execPath,
      ...['--input-type=module', '-e', script],
    )
    assert.equal(
      stdout,
      `true Cannot load native part posix: it is not built: ${COMPILER}\n`,
      stderr,
    )
  },
)

test('Commands that open no socket of the proxy work when nothing is built', { skip }, async () => {
  build()
  folder.configure({})
  const server = await FakeUpstream.start(answering)
  try {
    const rows: readonly (readonly [args: readonly string[], code: number, output: RegExp])[] = [
      [['match', '*.example', 'a.example'], 0, /a\.example/],
      [['config', 'check', 'namegate.yaml'], 0, /./],
      [['policy', 'check', 'policy.yaml'], 0, /./],
      [
        [
          'policy',
          'explain',
          '--policies',
          'policy.yaml',
          '--labels',
          'app=x',
          '--ask',
          'a.example',
        ],
        0,
        /a\.example may be asked/,
      ],
      [['ask', 'a.example', '--server', `127.0.0.1:${server.port}`], 0, /NOERROR/],
      [['doctor'], 1, /native parts posix, tcp, udp are not built/],
      [['version'], 0, /^namegate \d/],
    ]
    for (const [args, code, output] of rows) {
      const ran = await namegate(...args)
      assert.equal(ran.code, code, `${args.join(' ')}: ${ran.stdout}${ran.stderr}`)
      assert.match(ran.stdout, output)
    }
  } finally {
    await server.stop()
  }
})
