// The steps of action.yml, run one after the other with files of a runner: in both modes, with the job summary.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { BANK, canUseExecLab, DNS_4, ExecLab, SHOP } from '../../support/labs/exec-lab.ts'
import type { Output } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false
const CURL = 'curl --silent --show-error --max-time 8'

interface Step {
  readonly id?: string
  readonly run: string
  readonly env?: Readonly<Record<string, string>>
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>
  readonly runs: { readonly steps: readonly Step[] }
}

describe('action.yml', { skip }, () => {
  let lab: ExecLab
  const action = parse(readFileSync('action.yml', 'utf8')) as Action

  before(async () => {
    lab = await ExecLab.open()
  })

  after(async () => {
    await lab.close()
  })

  /** Runs all steps as a runner does. Returns the outcome of the step `exec`, and the files of the runner. */
  async function runAction(
    name: string,
    inputs: Readonly<Record<string, string>>,
  ): Promise<{ readonly exec: Output; readonly env: string; readonly summary: string }> {
    const folder = join(lab.folder, name)
    mkdirSync(folder)
    const files = Object.fromEntries(
      ['ENV', 'PATH', 'OUTPUT', 'STATE', 'STEP_SUMMARY'].map((each) => {
        writeFileSync(join(folder, each), '')
        return [`GITHUB_${each}`, join(folder, each)] as const
      }),
    )
    const known = new Map<string, string>()
    for (const [key, { default: value = '' }] of Object.entries(action.inputs))
      known.set(`inputs.${key}`, inputs[key] ?? value)
    let exec: Output | undefined
    for (const { id, run, env = {} } of action.runs.steps) {
      const given = Object.entries(env).map(([key, value]): readonly [string, string] => {
        return [
          key,
          value.replace(/\$\{\{ (\S+) \}\}/g, (_, each: string) => known.get(each) ?? ''),
        ]
      })
      const output = await lab.caller.run('bash', ['-c', run], {
        env: {
          ...files,
          ...Object.fromEntries(given),
          GITHUB_ACTION_PATH: process.cwd(),
          RUNNER_TEMP: folder,
          PATH: `${resolve('bin')}:${process.env['PATH'] ?? ''}`,
        },
        limitMs: 60_000,
      })
      if (id === 'exec') exec = output
      else assert.equal(output.code, 0, output.stderr)
      const lines = readFileSync(join(folder, 'OUTPUT'), 'utf8').split('\n')
      for (const line of lines) {
        const [key = '', value = ''] = line.split('=')
        if (key !== '')
          known.set(`steps.${id === 'prepare' ? 'prepare' : 'exec'}.outputs.${key}`, value)
      }
    }
    assert.ok(exec !== undefined)
    return {
      exec,
      env: readFileSync(join(folder, 'ENV'), 'utf8'),
      summary: readFileSync(join(folder, 'STEP_SUMMARY'), 'utf8'),
    }
  }

  const options = `--upstream=${DNS_4}:53 # the lab's server\n\n`

  it('enforces, ends with the code of the command, and lists refusals in the summary', async () => {
    const script = `${CURL} -4 http://${SHOP.name}/\necho EVIL=1 >>"$GITHUB_ENV"\nls "$RUNNER_TEMP"/namegate-*\nset +e\n${CURL} http://${BANK.name}/\nexit 7`
    const { exec, env, summary } = await runAction('enforce', {
      run: script,
      allow: `# the shop\n  ${SHOP.name}:80/tcp  # over http\n`,
      options,
    })
    assert.equal(exec.code, 7, exec.stderr)
    assert.equal(exec.stdout, `hello from ${SHOP.address4}:80\n`)
    assert.equal(env, '', 'the command cannot set variables of later steps')
    assert.match(summary, /^### namegate: what was refused$/m)
    assert.match(summary, /^\| `www\.bank\.test` \| \d+ \| `--allow www\.bank\.test` \|$/m)
    assert.match(summary, /^ +- matchName: www\.bank\.test$/m)
  })

  it('refuses nothing in the mode audit, and lists what would be refused', async () => {
    const run = `${CURL} -4 http://${BANK.name}/`
    const { exec, summary } = await runAction('audit', { run, mode: 'audit', options })
    assert.equal(exec.code, 0, exec.stderr)
    assert.match(summary, /^### namegate: what would be refused$/m)
    assert.match(summary, /\| `www\.bank\.test` \|/)
    assert.match(summary, /port: '80'/)
  })

  it('writes a summary without refusals', async () => {
    const { exec, summary } = await runAction('nothing', { run: 'true', options })
    assert.equal(exec.code, 0, exec.stderr)
    assert.equal(summary, '### namegate\n\nNothing was refused. The command asked for 0 names.\n')
  })
})
