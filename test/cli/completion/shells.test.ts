// Completion in real bash, zsh and fish: what a shell offers or writes after a tab, with a running daemon and without.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { until } from '../../support/peers/client.ts'
import { endpointsText, policyText } from '../../support/nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM, type RunningDaemon } from '../../support/nodes/daemon-process.ts'
import { run } from '../../support/labs/lab-process.ts'

const TOOLS = resolve('build/tools/shells')
const MISSING = 'build/tools/shells is not there (npm test gets it)'
const skip = existsSync(join(TOOLS, 'usr')) ? false : MISSING
const LIMIT_MS = 60_000

let folder: DaemonFolder
let daemon: RunningDaemon
before(async () => {
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['*.example']),
      'endpoints.yaml': endpointsText({ 'ns/shop-1': '127.0.0.1', 'ns/shop-2': '127.0.0.2' }),
      'silent.yaml': 'admin: { socket: nothing.sock }\n',
    },
  })
  daemon = await folder.serve()
  for (const shell of ['bash', 'fish', 'zsh']) {
    const { stdout, stderr } = await run(PROGRAM, ['completion', shell])
    assert.equal(stderr, '')
    folder.write(`completion.${shell}`, stdout)
  }
})
after(async () => {
  await daemon.process.stop()
  folder.remove()
})

/** The words that a shell offers for the end of a line, without their descriptions. */
type Offers = (line: string, config: string) => Promise<readonly string[]>

function environment(config: string): Record<string, string> {
  return {
    PATH: `${dirname(PROGRAM)}${delimiter}${process.env['PATH'] ?? ''}`,
    NAMEGATE_CONFIG: config,
    HOME: folder.path,
    XDG_CONFIG_HOME: folder.path,
    XDG_DATA_HOME: folder.path,
    TERM: 'dumb',
  }
}

const inBash: Offers = async (line, config) => {
  const script = `source completion.bash
COMP_LINE=$1; COMP_POINT=\${#1}; COMP_WORDS=(namegate); _namegate; printf '%s\\n' "\${COMPREPLY[@]}"`
  return await offered('bash', ['--norc', '-c', script, 'bash', line], config)
}

const inFish: Offers = async (line, config) => {
  const script = `source completion.fish; complete -C '${line}'`
  const library = join(TOOLS, 'usr/lib')
  const folders = readdirSync(library).map((name) => join(library, name))
  return await offered(join(TOOLS, 'usr/bin/fish'), ['-c', script], config, {
    LD_LIBRARY_PATH: folders.join(delimiter),
  })
}

async function offered(
  shell: string,
  args: readonly string[],
  config: string,
  env: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const options = { cwd: folder.path, env: { ...environment(config), ...env }, limitMs: LIMIT_MS }
  const { code, stdout, stderr } = await run(shell, args, options)
  assert.equal(stderr, '')
  assert.ok(code === 0 || code === 1, `${code} ${stdout}`)
  return stdout.split('\n').flatMap((each) => (each === '' ? [] : [each.split('\t')[0] ?? '']))
}

/** `written`: the line after a tab, where only one word fits or several begin alike. */
interface Row {
  readonly why: string
  readonly line: string
  readonly offered: readonly string[]
  readonly written: string
  readonly config?: string
}

const ROWS: readonly Row[] = [
  {
    why: 'commands',
    line: 'namegate comp',
    offered: ['completion'],
    written: 'namegate completion ',
  },
  {
    why: 'verbs',
    line: 'namegate policy li',
    offered: ['lint'],
    written: 'namegate policy lint ',
  },
  {
    why: 'kinds of tables',
    line: 'namegate get ip',
    offered: ['ipcache'],
    written: 'namegate get ipcache ',
  },
  {
    why: 'options',
    line: 'namegate datapath --so',
    offered: ['--socket'],
    written: 'namegate datapath --socket ',
  },
  {
    why: 'files',
    line: 'namegate config check end',
    offered: ['endpoints.yaml'],
    written: 'namegate config check endpoints.yaml ',
  },
  {
    why: 'endpoints of the running daemon',
    line: 'namegate audit on --endpoint ns/shop-1',
    offered: ['ns/shop-1'],
    written: 'namegate audit on --endpoint ns/shop-1 ',
  },
  {
    why: 'several endpoints',
    line: 'namegate ask a.example --as n',
    offered: ['ns/shop-1', 'ns/shop-2'],
    written: 'namegate ask a.example --as ns/shop-',
  },
  {
    why: 'no endpoints and no message without a daemon',
    line: 'namegate ask a.example --as n',
    offered: [],
    written: 'namegate ask a.example --as n',
    config: 'silent.yaml',
  },
]

for (const { why, line, offered: expected, config = 'namegate.yaml' } of ROWS) {
  test(`bash completes ${why}`, async () => {
    assert.deepEqual(await inBash(line, folder.in(config)), expected)
  })

  test(`fish completes ${why}`, { skip }, async () => {
    assert.deepEqual(await inFish(line, folder.in(config)), expected)
  })
}

test('bash completes the part of a word after = and :, which it takes for words of their own', async () => {
  const config = folder.in('namegate.yaml')
  assert.deepEqual(await inBash('namegate ask --as=ns/shop-1', config), ['ns/shop-1'])
  assert.deepEqual(await inBash('namegate status --config=end', config), ['endpoints.yaml'])
})

/** A widget that writes the line and empties it. */
const ZSH_START = `PS1=; unset zle_bracketed_paste; autoload -Uz compinit; compinit -D -u
source ./completion.zsh; bindkey '^I' complete-word
show() { print -r -- "[""[$BUFFER]""]"; BUFFER= }; zle -N show; bindkey '^X' show; print READ''Y
`

test('zsh completes all of these on a terminal', { skip }, async () => {
  const functions = readdirSync(join(TOOLS, 'usr/share/zsh/functions'), {
    recursive: true,
    withFileTypes: true,
  }).filter((entry) => entry.isDirectory())
  const FPATH = [
    join(TOOLS, 'usr/share/zsh/functions'),
    ...functions.map((entry) => join(entry.parentPath, entry.name)),
  ].join(':')
  for (const config of ['namegate.yaml', 'silent.yaml']) {
    const rows = ROWS.filter((row) => (row.config ?? 'namegate.yaml') === config)
    const zsh = join(TOOLS, 'bin/zsh-static')
    const shell = spawn('script', ['-qec', `${zsh} -f -i`, '/dev/null'], {
      cwd: folder.path,
      env: { ...environment(folder.in(config)), FPATH },
    })
    let said = ''
    shell.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    shell.stdin.on('error', () => undefined)
    try {
      shell.stdin.write(ZSH_START)
      await until('zsh is ready', () => said.includes('READY'), LIMIT_MS)
      for (const { line, written } of rows) {
        said = ''
        shell.stdin.write(`${line}\t\x18`)
        await until(`zsh completed ${line}`, () => /\[\[.*\]\]/.test(said), LIMIT_MS)
        assert.equal(/\[\[(.*)\]\]/.exec(said)?.[1], written, said)
      }
    } finally {
      shell.kill('SIGKILL')
    }
  }
})
