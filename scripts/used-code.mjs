// Runs a program once or more, and writes the code of the functions that it called. A start from this code compiles what it needs beyond it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import codeCache from '../bin/code-cache.cjs'

const require = createRequire(import.meta.url)

/** Commands that end at once without a daemon. The code of what they use is the code of all short commands. */
const USUAL = [
  '--help',
  'status --socket /nonexistent',
  'get names --socket /nonexistent',
  'flows --socket /nonexistent',
  'ask a.test --socket /nonexistent',
  'explain a.test --socket /nonexistent',
  'policy check config/policies',
  'policy explain --policies config/policies --labels app=shop --ask a.test',
  'config check --config config/namegate.yaml',
]

/** A daemon that needs no rights, and asks no server. */
const DAEMON = `listeners: [{ address: 127.0.0.1, port: 0, mode: explicit }]
upstreams: { servers: ["127.0.0.1:1"] }
policies: { paths: [policy.yaml] }
endpoints: { files: [endpoints.yaml] }
datapath: { kind: memory }
state: { directory: state }
admin: { socket: admin.sock }
metrics: { address: 127.0.0.1, port: 0 }
log: { level: fatal }
`
const POLICY = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '*.example.com' }] }]
`
const ENDPOINTS = 'endpoints: [{ name: shop, addresses: [127.0.0.1], labels: { app: shop } }]\n'
const DAEMON_LIMIT_MS = 20_000

/** Keeps the code of the usual commands: a quarter of all, and there in a quarter of the time. */
export async function keepCommands(filename, cache) {
  await keep(filename, cache, async (run) => {
    for (const line of USUAL) await run(line.split(' '))
    return true
  })
}

/** Keeps the code of a daemon that starts, answers a request and stops: less than half of all. Keeps all code if no daemon can run here. */
export async function keepDaemon(filename, cache) {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-code-'))
  const files = { 'namegate.yaml': DAEMON, 'policy.yaml': POLICY, 'endpoints.yaml': ENDPOINTS }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  await keep(filename, cache, async (run) => {
    let hasEnded = false
    const ended = run(['run', '--config', join(folder, 'namegate.yaml')]).then(() => {
      hasEnded = true
    })
    const from = performance.now()
    while (!(await answers(join(folder, 'admin.sock')))) {
      if (hasEnded || performance.now() - from > DAEMON_LIMIT_MS) return false
      await sleep(50)
    }
    process.kill(process.pid, 'SIGTERM')
    await ended
    return true
  })
}

async function answers(socketPath) {
  return await new Promise((resolve) => {
    const request = get({ socketPath, path: '/v1/status' }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode === 200))
    })
    request.on('error', () => resolve(false))
  })
}

/** `use` calls `run` with arguments, which runs the program until it would end its process. It returns false if that came to nothing. */
async function keep(filename, cache, use) {
  const octets = readFileSync(filename)
  const script = new Script(octets.latin1Slice(), { filename })
  process.stderr.write = (text, done) => {
    if (typeof done === 'function') done()
    return true
  }
  const exit = process.exit
  const isUsed = await use(async (args) => {
    process.argv = [process.execPath, 'namegate', ...args]
    const ended = new Promise((resolve) => (process.exit = resolve))
    const load = () => {
      throw new Error('the bundle of all commands has all packages')
    }
    script.runInThisContext()({}, require, pathToFileURL(filename).href, load)
    await ended
  })
  // The code carries the flags of this moment, which must be those of a start (src/native/young-generation.ts has set others).
  setFlagsFromString('--semi-space-growth-factor=2')
  setFlagsFromString('--parallel-scavenge')
  const { octets: code } = isUsed
    ? { octets: codeCache.codeOf(script, octets) }
    : codeCache.compile(octets, filename)
  writeFileSync(cache, code)
  exit(0)
}
