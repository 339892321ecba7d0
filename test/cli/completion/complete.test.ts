// Which words can follow a command line.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complete, type Wanted } from '../../../src/cli/completion/complete.ts'
import type { CommandTexts } from '../../../src/cli/reference.ts'
import { COMMANDS } from '../../../src/cli/commands.ts'
import { flag, json, list, text } from '../../../src/cli/definitions/options.ts'

function spec(name: string, given: Partial<CommandTexts> = {}): CommandTexts {
  return {
    name,
    summary: `does ${name}`,
    synopsis: [name],
    about: '',
    options: {},
    exitCodes: '',
    examples: [],
    ...given,
  }
}

const SPECS: readonly CommandTexts[] = [
  spec('audit', {
    words: ['on', 'off'],
    options: {
      endpoint: text('NAME', 'one endpoint\nmore'),
      node: flag('all'),
      config: text('FILE', 'config'),
      label: list('...', 'a label'),
      output: json('json'),
      form: { kind: 'text', value: 'json|yaml', about: 'form' },
    },
  }),
  spec('policy', {
    verbs: [spec('policy check', { options: { verdict: text('V', 'v') } }), spec('policy wait')],
  }),
  spec('config', { words: ['check', 'schema'] }),
  spec('resource', { words: ['set', 'remove'] }),
]

/** Words, or the kind with its prefix. */
function texts(wanted: Wanted): string {
  if (wanted.kind === 'words') return wanted.words.map(({ word }) => word).join(' ')
  return wanted.kind === 'files' ? ':files' : `:${wanted.kind} ${wanted.prefix}`.trim()
}

/** The last word of the line is completed; it is '' if the line ends in a blank. */
const ROWS: readonly (readonly [line: string, expected: string, why: string])[] = [
  ['', 'audit policy config resource', 'the commands'],
  ['au', 'audit', 'a part of a command'],
  ['--v', '--version', 'options that mean a command'],
  ['nothing x', '', 'an unknown command'],
  ['help pol', 'policy', 'help takes a command'],
  ['help policy wa', 'wait', 'and a verb'],
  ['policy ', 'check wait', 'verbs'],
  ['policy check ', ':files', 'paths of policies'],
  ['policy check --verdict de', 'deny denied', 'values of an option of a verb'],
  ['audit ', 'on off', 'words of a command'],
  ['audit o', 'on off', 'a part of a word'],
  ['audit --', '--endpoint --node --config --label --form --help', 'options'],
  ['audit -', '--endpoint --node --config --label -o --form --help', '-o too'],
  ['audit --node --label x --', '--endpoint --config --label --form --help', 'given once'],
  ['audit on --endpoint sh', ':endpoints', 'names of the daemon'],
  ['audit on --endpoint=sh', ':endpoints --endpoint=', 'in the same word'],
  ['audit --config ', ':files', 'a file'],
  ['audit --config=x', ':files', 'a file in the same word'],
  ['audit -o ', 'json', 'the values of -o'],
  ['audit --form y', 'yaml', 'values that the help lists'],
  ['audit --form=y', '--form=yaml', 'in the same word'],
  ['audit --nothing=y', '', 'an unknown option'],
  ['audit --endpoint on ', 'on off', 'a value is no argument'],
  ['audit on ', '--endpoint --node --config --label -o --form --help', 'then options'],
  ['config check ', ':files', 'paths after a word'],
  ['config schema x', '', 'none after another'],
  ['resource remove ', ':resources', 'names of resources'],
  ['resource set db x', '', 'only one name'],
]

for (const [line, expected, why] of ROWS) {
  test(`complete offers ${why}: ${line}`, () => {
    assert.equal(texts(complete(line.split(' '), SPECS)), expected)
  })
}

test('complete offers the options of every command and verb', () => {
  for (const { name, options } of COMMANDS.flatMap((each) => [each, ...(each.verbs ?? [])])) {
    const wanted = texts(complete([...name.split(' '), '-'], COMMANDS)).split(' ')
    for (const option of Object.keys(options)) {
      assert.ok(wanted.includes(option === 'output' ? '-o' : `--${option}`), `${name} ${option}`)
    }
  }
})

test('complete says a few words about commands and options', () => {
  const wanted = complete(['audit', '--en'], SPECS)
  assert.deepEqual(wanted, {
    kind: 'words',
    words: [{ word: '--endpoint', about: 'one endpoint' }],
  })
})
