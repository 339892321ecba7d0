// The demo as a newcomer runs it: everything that it shows is true, and it leaves nothing, also when it is interrupted.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { canUseLab } from '../support/labs/lab.ts'
import { LabProcess } from '../support/labs/lab-process.ts'
import { programArgs } from '../support/labs/program.ts'

const skip = canUseLab() ?? false
const LIMIT_MS = 120_000

/** Arguments: the folder that becomes /run/namegate, then the command. */
const OWN_RUN = 'mkdir -p /run/namegate && mount --bind "$1" /run/namegate && shift && exec "$@"'
/** The folder that the demo sees as /run/namegate. */
const shared = mkdtempSync(join(tmpdir(), 'ng-demo-run-'))
after(() => rmSync(shared, { recursive: true, force: true }))

function startDemo(...args: readonly string[]): LabProcess {
  const command = [process.execPath, ...programArgs('demo/main.ts', ...args)]
  const [program = '', ...rest] =
    skip === false ? ['unshare', '--mount', 'sh', '-c', OWN_RUN, 'sh', shared, ...command] : command
  return new LabProcess(program, rest)
}

/** Namespaces, folders, mounts and notes that a demo with this process id left. */
function leftBy(pid: number): string[] {
  const namespaces = existsSync('/run/netns') ? readdirSync('/run/netns') : []
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  return [
    ...namespaces.filter((name) => name.startsWith(`ng-${pid}-`)),
    ...readdirSync(tmpdir()).filter((name) => name.startsWith(`namegate-demo-${pid}-`)),
    ...readdirSync(shared),
    ...mounts.filter((line) => line.includes(`namegate-demo-${pid}-`)),
  ]
}

const TELLINGS = [
  { name: 'with the kernel', args: [], skip },
  { name: 'in memory', args: ['--memory'], skip: false },
] as const

for (const telling of TELLINGS) {
  test(`demo: ${telling.name} is true and leaves nothing`, { skip: telling.skip }, async (t) => {
    const demo = startDemo(...telling.args)
    const { pid } = demo
    const output = await demo.ended(LIMIT_MS)
    assert.equal(output?.code, 0, demo.stdout + demo.stderr)
    assert.deepEqual(leftBy(pid), [])
    const last = demo.stdout.trim().split('\n').at(-1) ?? ''
    assert.match(last, /^Done in \d+ s, nothing left behind\. Next: /)
    t.diagnostic(last)
  })
}

test('demo leaves nothing when it is interrupted', { skip }, async () => {
  const demo = startDemo()
  const { pid } = demo
  await demo.untilOutput(/^2\. /m, LIMIT_MS)
  demo.kill('SIGINT')
  assert.notEqual(await demo.ended(LIMIT_MS), undefined)
  assert.deepEqual(leftBy(pid), [])
})
