// Commands find the daemon that runs, from any folder: by notes of daemons, which have a folder of their own here. The sockets are real.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { mkFolder } from '../support/nodes/daemon-files.ts'
import { run, type Output } from '../support/labs/lab-process.ts'
import { VERSION } from '../../src/version.ts'
import { PROGRAM } from '../support/nodes/daemon-process.ts'

const folder = mkFolder()
const servers: Server[] = []
after(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A daemon for this test: it answers every request with this JSON. */
async function listen(name: string, json = '[]'): Promise<string> {
  const path = join(folder, name)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      const length = json.length + 1
      const head = `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\nconnection: close\r\n`
      socket.end(`${head}\r\n${json}\n`)
    })
  })
  servers.push(server)
  await new Promise<void>((done) => server.listen(path, done))
  return path
}

/** A folder from which commands are run, with notes of these sockets and perhaps a configuration that names a socket. */
function place(name: string, notes: readonly string[], socket?: string): string {
  const path = join(folder, name)
  mkdirSync(join(path, 'run/namegate'), { recursive: true })
  notes.forEach((note, i) => writeFileSync(join(path, `run/namegate/${i}.socket`), `${note}\n`))
  if (socket !== undefined) {
    mkdirSync(join(path, 'config'))
    writeFileSync(join(path, 'config/namegate.yaml'), `admin: { socket: '${socket}' }\n`)
  }
  return path
}

/** Runs a command with the notes of `cwd` and no others. */
async function command(cwd: string, ...args: readonly string[]): Promise<Output> {
  const env = { XDG_RUNTIME_DIR: join(cwd, 'run'), NODE_EXTRA_CA_CERTS: '', NAMEGATE_CONFIG: '' }
  const inside =
    'mkdir -p /run/namegate && mount -t tmpfs none /run/namegate && mount -t tmpfs none /etc && exec "$@"'
  return await run('unshare', ['--mount', 'sh', '-c', inside, 'sh', PROGRAM, ...args], {
    cwd,
    env,
    limitMs: 60_000,
  })
}

const skip = process.getuid?.() === 0 ? false : 'hiding the notes of this machine needs root'
const GET = ['get', 'endpoints', '-o', 'json'] as const

test('A command without any configuration asks the only daemon that runs', { skip }, async () => {
  const cwd = place('plain', [await listen('a.sock'), join(folder, 'ended.sock')])
  const { code, stdout, stderr } = await command(cwd, ...GET)
  assert.deepEqual([code, stdout.trim(), stderr], [0, '[]', ''])
})

test(
  'A command reports that it asks another daemon than the configuration names',
  { skip },
  async () => {
    const running = await listen('b.sock')
    const cwd = place('other', [running], join(folder, 'not-there.sock'))
    const { code, stderr } = await command(cwd, ...GET)
    assert.equal(code, 0, stderr)
    assert.match(
      stderr,
      /^namegate: asking the daemon at \S+b\.sock, the only one that runs; none runs with config\/namegate\.yaml\n$/,
    )
  },
)

test('A command in a clone asks the only daemon without a word', { skip }, async () => {
  const cwd = place('clone', [await listen('n.sock')])
  symlinkSync(resolve('config'), join(cwd, 'config'))
  const { code, stderr } = await command(cwd, ...GET)
  assert.deepEqual([code, stderr], [0, ''])
})

test('A daemon that the configuration names is asked, whatever else runs', { skip }, async () => {
  const cwd = place('named', [await listen('c.sock')], await listen('d.sock'))
  assert.deepEqual((await command(cwd, ...GET)).stderr, '')
})

test('doctor asks the only daemon that runs, and checks its configuration', { skip }, async () => {
  const config = join(folder, 'made-by-up.yaml')
  writeFileSync(config, 'metrics: { port: 0 }\n')
  const status = { version: VERSION, pid: 7, ready: true, mode: 'enforce', config }
  const cwd = place('doctor', [await listen('h.sock', JSON.stringify(status))])
  const { stdout, stderr } = await command(cwd, 'doctor')
  assert.match(stdout, /^ok +daemon +version \S+, pid 7, ready, mode enforce$/m, stderr)
  assert.match(stdout, /^ok +configuration +\S+made-by-up\.yaml$/m)
})

test('doctor --socket checks the configuration of the daemon there', { skip }, async () => {
  const config = join(folder, 'of-daemon.yaml')
  writeFileSync(config, 'metrics: { port: 0 }\n')
  const status = { version: VERSION, pid: 7, ready: true, mode: 'enforce', config }
  const running = await listen('m.sock', JSON.stringify(status))
  const cwd = place('doctor-socket', [running], join(folder, 'not-there.sock'))
  const named = await command(cwd, 'doctor', '--socket', running)
  assert.match(named.stdout, /^ok +configuration +\S+of-daemon\.yaml$/m, named.stderr)
  assert.doesNotMatch(named.stdout, /config\/namegate\.yaml/)
  const bare = await command(cwd, 'doctor')
  assert.match(bare.stdout, /^ok +configuration +\S+of-daemon\.yaml$/m, bare.stderr)
  assert.match(
    bare.stdout,
    /^unchecked +configuration +config\/namegate\.yaml is not that of the daemon at \S+m\.sock$/m,
  )
  assert.match(
    bare.stdout,
    /^ +remedy: to check it: \S*namegate doctor --config config\/namegate\.yaml$/m,
  )
  const both = await command(cwd, 'doctor', '--config', 'config/namegate.yaml', '--socket', running)
  assert.match(both.stdout, /^ok +configuration +config\/namegate\.yaml$/m, both.stderr)
  assert.match(
    both.stdout,
    /^warning +configuration +config\/namegate\.yaml is checked, and the daemon at \S+m\.sock has \S+of-daemon\.yaml$/m,
  )
  const absent = await command(cwd, 'doctor', '--socket', 'nope.sock')
  assert.match(
    absent.stdout,
    /^warning +daemon +No daemon at nope\.sock: .*choose a running one with --socket \S+m\.sock$/m,
    absent.stderr,
  )
})

test('doctor names the daemons that run where it can choose none', { skip }, async () => {
  const [first, second] = [await listen('i.sock'), await listen('j.sock')]
  const { stdout, stderr } = await command(place('doctor-several', [first, second]), 'doctor')
  assert.match(
    stdout,
    /^warning +daemon +2 daemons run, and none at \S+ \(the socket .*\): choose one with --socket .*i\.sock, --socket .*j\.sock$/m,
    stderr,
  )
  assert.match(
    stdout,
    /^warning +configuration +found none.*\n +remedy: choose a daemon \(see daemon\), or give --config FILE$/m,
  )
})

test('Of several daemons none is chosen: the error lists their sockets', { skip }, async () => {
  mkdirSync(join(folder, 'a-box'))
  const [first, second] = [await listen('a-box/e.sock'), await listen('f.sock')]
  writeFileSync(join(dirname(first), 'note'), 'netns box\n/run/up.allow\n')
  const { code, stderr } = await command(place('several', [first, second]), ...GET)
  assert.equal(code, 3)
  assert.match(
    stderr,
    /choose one with --socket .*e\.sock \(protects netns box\), --socket .*f\.sock\n/,
  )
})

test('Beside a wrong --socket the error lists the daemons that run', { skip }, async () => {
  const cwd = place('wrong-socket', [await listen('k.sock'), await listen('l.sock')])
  for (const args of [['status'], GET]) {
    const { code, stderr } = await command(cwd, ...args, '--socket', 'nope.sock')
    assert.equal(code, 3)
    assert.match(
      stderr,
      /No daemon at nope\.sock: .*choose a running one with --socket .*k\.sock, --socket .*l\.sock\n/,
    )
  }
})

/** A configuration with one transparent listener at this port. */
function intercepting(port: number): string {
  return `listeners: [ { port: ${port}, mode: redirect } ]
upstreams: { servers: ['192.0.2.53:53'] }
endpoints: { files: [] }
`
}

test('intercept show prints the rules of the daemon that runs', { skip }, async () => {
  const config = join(folder, 'intercepting.yaml')
  writeFileSync(config, intercepting(5311))
  const status = { pid: 7, config, interception: 'redirect to port 5311', intercepting: true }
  const running = await listen('shown.sock', JSON.stringify(status))
  const cwd = place('intercept', [running], join(folder, 'not-there.sock'))
  for (const args of [[], ['--socket', running]]) {
    const { code, stdout, stderr } = await command(cwd, 'intercept', 'show', ...args)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^# redirect to port 5311: /)
    assert.match(stdout, /^# of the configuration \S+intercepting\.yaml of the daemon$/m)
  }
  const own = join(cwd, 'own.yaml')
  writeFileSync(own, intercepting(5312))
  const named = await command(cwd, 'intercept', 'show', '--config', own)
  assert.match(named.stdout, /^# redirect to port 5312: /, named.stderr)
  assert.doesNotMatch(named.stdout, /of the configuration/)
})

test('intercept show chooses no daemon of several, and names them', { skip }, async () => {
  const cwd = place('intercept-several', [await listen('o.sock'), await listen('p.sock')])
  const { code, stderr } = await command(cwd, 'intercept', 'show')
  assert.equal(code, 3)
  assert.match(stderr, /2 daemons run.*choose one with --socket .*o\.sock, --socket .*p\.sock$/m)
})

test(
  'intercept show without a daemon prints the rules of its own configuration',
  { skip },
  async () => {
    const cwd = place('intercept-alone', [], join(folder, 'not-there.sock'))
    const file = join(cwd, 'config/namegate.yaml')
    writeFileSync(
      file,
      `admin: { socket: ${join(folder, 'not-there.sock')} }\n${intercepting(5313)}`,
    )
    const { stdout, stderr } = await command(cwd, 'intercept', 'show')
    assert.match(stdout, /^# redirect to port 5313: /, stderr)
  },
)

test(
  'What ends enforcement never chooses a daemon, nor does a command with --config',
  { skip },
  async () => {
    const cwd = place('strict', [await listen('g.sock')], join(folder, 'not-there.sock'))
    for (const args of [
      ['datapath', 'mode', 'bypass'],
      ['get', 'endpoints', '--config', 'config/namegate.yaml'],
    ]) {
      const { code, stderr } = await command(cwd, ...args)
      assert.equal(code, 3, stderr)
      assert.ok(!stderr.includes('g.sock'), stderr)
    }
  },
)
