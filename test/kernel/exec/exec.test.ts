// `namegate exec` around the command: exit codes, signals and the terminal. As an ordinary user.

import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(async () => {
    lab = await ExecLab.open()
  })

  after(async () => {
    await lab.close()
  })

  const codes: readonly (readonly [string, number, readonly string[], RegExp])[] = [
    ['the command ends with a code', 7, ['sh', '-c', 'exit 7'], /^$/],
    ['a signal ends the command', 143, ['sh', '-c', 'kill -TERM $$'], /^$/],
    [
      'the command is not found',
      127,
      ['no-such-command'],
      /^namegate: Cannot run no-such-command: command not found$/m,
    ],
    [
      'the command cannot be executed',
      126,
      ['/etc/passwd'],
      /^namegate: Cannot run \/etc\/passwd: it cannot be executed/m,
    ],
  ]

  it('ends with the exit code of the command, or with the code for a command that cannot run', async () => {
    const ran = await Promise.all(
      codes.map(async ([, , command]) => await lab.exec({ who: 'user', args: ['--', ...command] })),
    )
    const got = ran.map(({ code }, i) => [codes[i]?.[0], code])
    assert.deepEqual(
      got,
      codes.map(([why, code]) => [why, code]),
    )
    for (const [i, { stderr }] of ran.entries()) assert.match(stderr, codes[i]?.[3] ?? /^$/)
  })

  it('keeps the working folder, stdin and the environment, and one resolver', async () => {
    const script = 'pwd; cat; echo $GREETING; cat /etc/resolv.conf | grep nameserver; id -u'
    const input = join(lab.folder, 'input')
    writeFileSync(input, 'from stdin\n')
    const { command, rest } = lab.commandOf('user', ['--quiet', '--', 'sh', '-c', script])
    const quoted = [command, ...rest].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const env = { GREETING: 'hello' }
    const { stdout, stderr } = await lab.caller.run('sh', ['-c', `${quoted} <${input}`], {
      env,
      limitMs: 60_000,
    })
    const lines = stdout.trim().split('\n')
    assert.match(lines[0] ?? '', /\/repo$/, stderr)
    assert.deepEqual(lines.slice(1), ['from stdin', 'hello', 'nameserver 127.0.0.1', '47053'])
  })

  it('passes each signal on once, and ends as the command does', async () => {
    const script = `trap 'echo got INT' INT; trap 'echo got TERM; exit 5' TERM; echo up; while :; do sleep 0.05; done`
    const started = lab.start({ who: 'user', args: ['--', 'sh', '-c', script] })
    await shows(started, 'up')
    process.kill(started.pid, 'SIGINT')
    await shows(started, 'got INT')
    process.kill(started.pid, 'SIGTERM')
    const ended = await started.ended(20_000)
    assert.equal(ended?.code, 5)
    assert.equal(ended?.stdout.split('got INT').length, 2)
  })

  it('gives the command the terminal: job control works inside, and ^C reaches only the command', async () => {
    const { command, rest } = lab.commandOf('user', ['--quiet', '--', 'sh', '-c', TERMINAL])
    const words = [command, ...rest].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const typed = lab.caller.start(
      'sh',
      [
        '-c',
        `(while [ ! -e '${lab.folder}/up' ]; do sleep 0.1; done; printf '\\003'; sleep 2) | script -qec "$LINE" /dev/null`,
      ],
      {
        env: { LINE: words, UP: join(lab.folder, 'up') },
      },
    )
    chmodSync(lab.folder, 0o777)
    const ended = await typed.ended(30_000)
    assert.match(ended?.stdout ?? typed.stdout, /tty yes[\s\S]*interrupted/)
    assert.equal(ended?.code, 9)
  })
})

const TERMINAL = `[ -t 0 ] && echo tty yes; trap 'echo interrupted; exit 9' INT; : >$UP; while :; do sleep 0.1; done`

async function shows(started: LabProcess, text: string): Promise<void> {
  await started.until(() => (started.stdout.includes(text) ? true : undefined), text, 30_000)
}
