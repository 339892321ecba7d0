// The addons under AddressSanitizer and UndefinedBehaviorSanitizer, with control messages as musl declares them: the suites of the sockets
// pass in their own process, and a planted fault is reported.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { nativeIsLacking } from '../support/open-sockets.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The addons that the suites load. */
const ADDONS = 'posix nftables tcp udp planted'
const PLANTED = `
const udp = require('./build/Sanitize/planted.node')
const engine = udp.open(() => undefined)
const none = new Uint8Array(16)
for (let i = 0; i < 5; i++) udp.socket(engine, Int32Array.of(4, 0, 0, 0, 0, 0, 0, 0, 0), none, none)`

/** Full paths of the sanitizers' libraries, or the reason why they are missing. */
function libraries(): readonly string[] | string {
  const lacking = nativeIsLacking()
  if (lacking !== false) return lacking
  const found = []
  for (const name of ['libasan.so', 'libubsan.so']) {
    const { stdout } = spawnSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' })
    const path = (stdout ?? '').trim()
    if (!existsSync(path)) return `gcc has no ${name}: apt-get install gcc libgcc-12-dev`
    found.push(path)
  }
  return found
}

const preload = libraries()
const skip = typeof preload === 'string' ? preload : false

function run(args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const result = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 180_000,
    maxBuffer: 64 << 20,
    env: {
      ...env,
      NAMEGATE_ADDONS: 'Sanitize',
      LD_PRELOAD: typeof preload === 'string' ? '' : preload.join(' '),
      // Node frees little at its end, so leaks are not checked. A report ends the process.
      ASAN_OPTIONS: 'detect_leaks=0:halt_on_error=1',
      UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
    },
  })
  return { status: result.status, text: result.stdout + result.stderr }
}

/** The lines of the failed tests, each with the lines after it. */
function failuresIn(text: string): string {
  const lines = text.split('\n')
  return lines
    .flatMap((line, i) => (/^ *not ok/.test(line) ? lines.slice(i, i + 20) : []))
    .join('\n')
}

describe('the sanitizer build', { skip }, () => {
  before(() => {
    const env = { ...process.env, NAMEGATE_SANITIZE: '1', NAMEGATE_ONLY: ADDONS }
    execFileSync('sh', ['scripts/build-native.sh'], { cwd: ROOT, env, stdio: 'pipe' })
  })

  it('the sanitizer build passes the suites of the sockets without a report', () => {
    const suites = [
      'native/udp/udp',
      'native/tcp/tcp',
      'proxy/sockets/udp',
      'proxy/upstream/upstream-replies',
    ]
    // Without root, the suite would skip all of its tests.
    if (process.getuid?.() === 0) suites.push('native/netfilter/nftables')
    const modules = process.env['NAMEGATE_TEST_MODULES']
    const files = suites.map((name) =>
      modules === undefined ? `test/${name}.test.ts` : join(modules, `test/${name}.test.js`),
    )
    const loader = modules === undefined ? ['--import', 'tsx'] : []
    // One file at a time: five files at once under the sanitizers wait for each other longer than their limits.
    const { status, text } = run([...loader, '--test', '--test-concurrency=1', ...files])
    assert.doesNotMatch(text, /Sanitizer|runtime error/, text.slice(0, 4000))
    assert.equal(status, 0, failuresIn(text) || text.slice(-4000))
    assert.match(text, /^# pass ([3-9]\d|\d{3,})$/m, 'they ran')
    assert.match(text, /^# skipped 0$/m)
  })

  it('the sanitizer build reports a planted overflow and its place', () => {
    const { status, text } = run(['-e', PLANTED])
    assert.notEqual(status, 0)
    assert.match(text, /AddressSanitizer: heap-buffer-overflow/)
    assert.match(text, /in open_socket .*udp-socket\.h/)
  })
})
