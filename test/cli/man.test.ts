// The man pages name every command and every key, and programs that format man pages accept them.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { configJsonSchema } from '../../src/config/load.ts'
import { commandPage, configPage } from '../../src/cli/man.ts'
import { namegate, runCommand } from '../support/nodes/command.ts'
import { run } from '../support/labs/lab-process.ts'

const MANDOC = resolve('build/tools/mandoc/usr/bin/mandoc')
const skip = existsSync(MANDOC) ? false : 'build/tools/mandoc is not there (npm test gets it)'

const folder = mkdtempSync(join(tmpdir(), 'namegate-man-'))
after(() => rmSync(folder, { recursive: true }))

const helpCommand = namegate('help')

async function page(name: string): Promise<string> {
  const { code, out, err } = await runCommand(helpCommand, '--man', name)
  assert.deepEqual([code, err], [0, ''])
  return out
}

test('helpCommand prints a man page of every command and verb', async () => {
  const { code, out } = await runCommand(helpCommand, '--man')
  assert.equal(code, 0)
  assert.match(out, /^\.TH NAMEGATE 1 /)
  for (const { name } of COMMANDS.filter((each) => !('verbs' in each)))
    assert.ok(out.includes(`\n.SS ${name}\n`), name)
  for (const verb of ['check', 'explain', 'test', 'lint', 'suggest', 'wait'])
    assert.ok(out.includes(`\n.SS policy ${verb}\n`), verb)
  assert.equal(out, await page('namegate'))
})

test('helpCommand prints a man page of every key', async () => {
  const out = await page('namegate.yaml')
  assert.match(out, /^\.TH NAMEGATE\.YAML 5 /)
  for (const key of ['listeners[].port', 'dns.hold.limit', 'audit.endpoints[].matchLabels'])
    assert.ok(out.includes(`\n.TP\n.B ${key}\n`), key)
  assert.match(out, /\n\.B dns\.min\\-ttl\n[^\\]*Default:\s0s\.\n/)
})

test('helpCommand says which man pages there are', async () => {
  const { code, err } = await runCommand(helpCommand, '--man', 'other')
  assert.equal(code, 2)
  assert.match(err, /found other, expected namegate or namegate\.yaml/)
})

test('man pages have only lines that begin with known macros', async () => {
  for (const name of ['namegate', 'namegate.yaml']) {
    const lines = (await page(name)).split('\n')
    const known = /^\.(TH|SH|SS|PP|TP|nf|fi|br|B|BR|I|RI)\b/
    assert.deepEqual(
      lines.filter((line) => /^[.']/.test(line) && !known.test(line)),
      [],
      'lines of text that roff would read as macros',
    )
  }
})

test('man pages of hostile texts show these texts', { skip }, () => {
  const text = ".TH x\n'nf\n\\fB -- a\\b\n\n  indented .so /etc/passwd"
  const spec = { ...COMMANDS[0], name: 'run', summary: 's', synopsis: ['run'] }
  const options = { 'a-b': { kind: 'flag' as const, about: ".B 'x' \\n" } }
  const given = commandPage(
    [{ ...spec, about: text, options, exitCodes: '', examples: ['.x'] }],
    '1',
  )
  const shown = formatted(given)
  for (const part of [".TH x 'nf \\fB -- a\\b", 'indented .so /etc/passwd', ".B 'x' \\n", '--a-b'])
    assert.ok(shown.includes(part), `${part}: ${shown}`)
})

test('man pages pass the checks of mandoc', { skip }, async () => {
  for (const name of ['namegate', 'namegate.yaml']) {
    const path = join(folder, name)
    writeFileSync(path, await page(name))
    const { stdout, stderr } = await run(MANDOC, ['-T', 'lint', '-W', 'warning', path])
    // A page has no date, so that the page of one version is always the same.
    const faults = stdout.split('\n').filter((line) => !/missing date|^$/.test(line))
    assert.deepEqual([faults, stderr], [[], ''], name)
  }
})

test('man pages show what the help says', { skip }, () => {
  const shown = formatted(commandPage(COMMANDS, '1.2.3'))
  assert.match(shown, /^ {7}namegate status \[--ready\]/m)
  assert.match(shown, /^ {7}--ready\n? +end with exit code 1 if the daemon is not ready$/m)
  assert.match(shown, /^ {7}endpoints\n? +workloads to which policy applies/m)
  assert.match(formatted(configPage(configJsonSchema(), '1')), /^ {7}dns\.hold\.limit$/m)
})

/** As a terminal shows it, without bold letters. */
function formatted(text: string): string {
  const args = ['-T', 'utf8', '-O', 'width=100']
  const shown = execFileSync(MANDOC, args, { input: text, encoding: 'utf8' })
  return shown.replaceAll(new RegExp(`.${String.fromCharCode(8)}`, 'g'), '')
}
