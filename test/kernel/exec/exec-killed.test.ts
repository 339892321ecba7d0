// `namegate exec` killed with SIGKILL, as root and as a user: no process, interface or table of the run stays.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { until } from '../../support/peers/client.ts'
import { canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(() => {
    lab = ExecLab.bare()
  })

  after(async () => {
    await lab.close()
  })

  it('leaves nothing when its process is killed', async () => {
    for (const who of ['root', 'user'] as const) {
      const mark = `ng-left-${process.pid}-${who}`
      const before = pidsIn(lab.caller.namespace).length
      const started = lab.start({
        who,
        args: ['--', 'sh', '-c', `echo up; sleep 300; echo ${mark}`],
      })
      await shows(started, 'up')
      started.kill('SIGKILL')
      await untilNone(async () => await left(mark, before))
    }
  })

  /** Processes, interfaces and tables on the caller's host that belong to runs with the mark. */
  async function left(mark: string, before: number): Promise<readonly string[]> {
    const inside = pidsIn(lab.caller.namespace)
    const links = (await lab.caller.run('ip', ['-o', 'link'])).stdout.split('\n')
    const tables = (await lab.caller.run('nft', ['list', 'tables'])).stdout.split('\n')
    return [
      ...processesWith(mark),
      ...(inside.length > before ? inside : []),
      ...[...links, ...tables].filter((line) => line.includes('ngx')),
    ]
  }
})

async function shows(started: LabProcess, text: string): Promise<void> {
  await started.until(() => (started.stdout.includes(text) ? true : undefined), text, 30_000)
}

/** Waits until nothing is found. A failure lists what is left. */
async function untilNone(look: () => Promise<readonly string[]>): Promise<void> {
  let found: readonly string[] = []
  const isNone = async (): Promise<boolean> => (found = await look()).length === 0
  await until('nothing to be left', isNone, 15_000, 100).catch(() => undefined)
  assert.deepEqual(found, [])
}

function pidsIn(namespace: string): readonly string[] {
  return execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
}

/** Command lines that contain the text. */
function processesWith(text: string): readonly string[] {
  return readdirSync('/proc').flatMap((pid) => {
    const line = /^[0-9]+$/.test(pid) ? readOrEmpty(`/proc/${pid}/cmdline`) : ''
    return line.includes(text) ? [line.replaceAll('\0', ' ')] : []
  })
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
