// A start that the machine refuses: one clear line with the remedy on stderr, exit 3, and a running daemon is left alone.

import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { DEFAULT_PIN_PATH } from '../../src/core/pin-path.ts'
import { pinDirectory } from '../../src/datapath/ebpf/maps/bpffs.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import {
  DaemonFolder,
  NEEDS_ROOT,
  NOBODY,
  PROGRAM,
  type RunningDaemon,
} from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import type { Output } from '../support/labs/lab-process.ts'

const files = {
  'policy.yaml': policyText('web', ['a.example']),
  'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
}
const folders: DaemonFolder[] = []
let first: DaemonFolder
let daemon: RunningDaemon

before(async () => {
  first = mkDaemon({})
  daemon = await first.serve()
})

after(async () => {
  await daemon.process.stop()
  folders.forEach((folder) => folder.remove())
})

function mkDaemon(config: Readonly<Record<string, string>>): DaemonFolder {
  const folder = new DaemonFolder({ files, config })
  folders.push(folder)
  return folder
}

/** Checks for one line of the program itself, besides lines of the log. */
function assertRefused(output: Output, line: RegExp): void {
  const own = output.stderr.split('\n').filter((each) => each !== '' && !/^[[{]/.test(each))
  assert.deepEqual([output.code, output.stdout, own.length], [3, '', 1], output.stderr)
  assert.match(own[0] ?? '', line)
}

function onPort(port: number): string {
  return `[{ address: 127.0.0.1, port: ${port}, mode: explicit }]`
}

describe('namegate run', { concurrency: 2 }, () => {
  test('exits 3 when another daemon has the state folder, and names that daemon', async () => {
    const { pid } = daemon.process
    const folder = mkDaemon({ state: `{ directory: ${first.in('state')} }` })
    assertRefused(
      await folder.namegate('run'),
      new RegExp(
        `^namegate: Cannot start: state folder .* in use by the namegate with pid ${pid}: `,
      ),
    )
  })

  test('exits 3 when a file is in the place of the state folder, with a remedy', async () => {
    const folder = mkDaemon({ state: '{ directory: policy.yaml }' })
    const output = await folder.namegate('run')
    assertRefused(
      output,
      /^namegate: Cannot lock state folder .*policy\.yaml: .*a file .* move it away$/,
    )
  })

  test('exits 3 when another daemon answers at the admin socket, and leaves that daemon alone', async () => {
    const folder = mkDaemon({ admin: `{ socket: ${first.in('admin.sock')} }` })
    assertRefused(
      await folder.namegate('run'),
      /^namegate: Cannot listen on .*admin\.sock: another daemon answers there: /,
    )
    assert.equal((await daemon.status())['pid'], daemon.process.pid)
  })

  test('exits 3 when a UDP port is taken', async () => {
    const folder = mkDaemon({ listeners: onPort(daemon.port) })
    const line = new RegExp(
      `127\\.0\\.0\\.1:${daemon.port} \\(UDP\\): port .* in use: stop .* or set`,
    )
    assertRefused(await folder.namegate('run'), line)
  })

  test('exits 3 when a TCP port is taken', async () => {
    const server = createServer()
    const port = await freePort()
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
    const folder = mkDaemon({ listeners: onPort(port) })
    const output = await folder.namegate('run')
    server.close()
    assertRefused(output, /\(TCP\): port \d+ is already in use: /)
  })

  test('exits 3 when the metrics port is taken', async () => {
    const server = createServer()
    const port = await freePort()
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
    const folder = mkDaemon({ metrics: `{ address: 127.0.0.1, port: ${port} }` })
    const output = await folder.namegate('run')
    server.close()
    assertRefused(output, /^namegate: Cannot listen on 127\.0\.0\.1 port \d+: .*: give another /)
  })

  test('exits 3 when no interface has a listener address, and leaves no port bound', async () => {
    const port = await freePort()
    const folder = mkDaemon({
      listeners: `[{ address: 127.0.0.1, port: ${port}, mode: explicit }, { address: 192.0.2.1, port: ${port}, mode: explicit }]`,
    })
    assertRefused(
      await folder.namegate('run'),
      /192\.0\.2\.1:\d+ \(UDP\): no interface has this address/,
    )
    const socket = createSocket('udp4')
    await new Promise<void>((done) => socket.bind(port, '127.0.0.1', done))
    socket.close()
  })

  test(
    'exits 3 when pins exist in the usual path and the config has another path',
    { skip: NEEDS_ROOT },
    async () => {
      const folder = mkDaemon({ datapath: '{ kind: ebpf, ebpf: { pin-path: pins } }' })
      // Folders in their own mount namespace: pins of this machine do not matter.
      const pins = pinDirectory(DEFAULT_PIN_PATH)
      const script = `mount -t tmpfs none /sys/fs/bpf && mount -t tmpfs none /run && mkdir -p ${pins} && touch ${pins}/ng_endpoints && exec ${PROGRAM} run --config namegate.yaml`
      assertRefused(
        await folder.run('unshare', '-m', 'sh', '-c', script),
        /^namegate: Cannot start with pins in pins: what ebpf left in \/sys\/fs\/bpf\/\S+ still enforces: take it away with namegate datapath detach --config namegate\.yaml$/,
      )
    },
  )

  test('exits 3 when the folder of the admin socket cannot be made', async () => {
    const folder = mkDaemon({ admin: '{ socket: /proc/nowhere/admin.sock }' })
    assertRefused(
      await folder.namegate('run'),
      /^namegate: Cannot listen on \/proc\/nowhere\/admin\.sock: .*ENOENT.*: give another admin\.socket/,
    )
  })

  test('exits 3 when the pin path is in no bpffs', { skip: NEEDS_ROOT }, async () => {
    const folder = mkDaemon({ datapath: '{ kind: ebpf, ebpf: { pin-path: pins } }' })
    assertRefused(
      await folder.namegate('run'),
      /^namegate: Cannot pin maps in pins: no bpffs is mounted there: give a datapath\.ebpf\.pin-path below \/sys\/fs\/bpf$/m,
    )
  })
})

describe('namegate run without root', { skip: NEEDS_ROOT, concurrency: 2 }, () => {
  const asNobody = async (folder: DaemonFolder): Promise<Output> =>
    await folder.run('setpriv', ...NOBODY, PROGRAM, 'run', '--config', 'namegate.yaml')

  /** A folder in which everyone can write. */
  function mkOpen(config: Readonly<Record<string, string>>): DaemonFolder {
    const folder = mkDaemon({
      state: '{ directory: open/state }',
      admin: '{ socket: open/admin.sock }',
      ...config,
    })
    folder.write('open/locked/lock', '')
    for (const name of ['open', 'open/locked']) chmodSync(folder.in(name), 0o777)
    chmodSync(folder.in('open/locked/lock'), 0o600)
    return folder
  }

  const ROWS = [
    [
      'a port below 1024',
      { listeners: onPort(1001) },
      /no privilege for port 1001: run as root or with CAP_NET_BIND_SERVICE/,
    ],
    [
      'the lock of a state folder',
      { state: '{ directory: open/locked }' },
      /^namegate: Cannot .* state folder .*open\/locked: .*EACCES.*: /,
    ],
    [
      'an admin socket',
      { admin: '{ socket: closed/admin.sock }' },
      /^namegate: Cannot listen on closed\/admin\.sock: .*EACCES.*: give another/,
    ],
    [
      'the eBPF datapath',
      { datapath: '{ kind: ebpf }' },
      /^namegate: Cannot .*: .*(as|run as) root/,
    ],
  ] as const
  for (const [what, config, line] of ROWS) {
    test(`exits 3 without the privilege for ${what}`, async () => {
      const folder = mkOpen(config)
      assertRefused(await asNobody(folder), line)
    })
  }
})
