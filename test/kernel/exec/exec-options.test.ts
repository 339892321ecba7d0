// The options of `namegate exec` for files, environment, project and report, as root and as an ordinary user. Each works as docs/exec.md
// describes, and the command cannot undo it.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  BANK,
  canUseExecLab,
  DNS_4,
  ExecLab,
  SHOP,
  UNLEARNED_4,
} from '../../support/labs/exec-lab.ts'
import type { Output } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false
/** A port without a server. */
const CLOSED = `${DNS_4}:9`
/** An address that no host has. */
const NOWHERE = '198.18.53.77:53'
const CURL = 'curl --silent --show-error --max-time 8'

describe('namegate exec', { skip }, () => {
  let lab: ExecLab
  let project: string

  before(async () => {
    lab = await ExecLab.open()
    project = join(lab.folder, 'project')
    mkdirSync(join(project, '.git'), { recursive: true })
    mkdirSync(join(project, 'inner'))
    writeFileSync(join(project, '.namegate.allow'), `${SHOP.name}:80/tcp\n`)
  })

  after(async () => {
    await lab.close()
  })

  async function sh(
    who: 'root' | 'user',
    options: readonly string[],
    script: string,
    more: { readonly folder?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<Output> {
    return await lab.exec({ who, args: [...options, '--', 'sh', '-c', script], ...more })
  }

  it('says which DNS servers did not answer, and how to name another one', async () => {
    const ask = `getent hosts ${SHOP.name}; echo $?`
    const silent = ['--allow', SHOP.name, '--upstream', CLOSED]
    const { stdout, stderr } = await sh('root', silent, ask)
    assert.equal(stdout, '2\n', stderr)
    const note = `no DNS server answered (asked ${CLOSED}): name another one with --upstream ADDRESS`
    assert.ok(stderr.includes(note), stderr)
    const nowhere = ['--allow', SHOP.name, '--upstream', NOWHERE]
    const { stderr: early } = await sh('root', nowhere, `timeout 2 ${ask}`)
    assert.ok(early.includes(`no DNS server answered (asked ${NOWHERE})`), early)
    const { stderr: other } = await sh('root', ['--allow', SHOP.name], ask)
    assert.doesNotMatch(other, /no DNS server answered/)
  })

  for (const who of ['root', 'user'] as const) {
    it(`as ${who}: --hide covers files and folders, and the command cannot uncover them`, async () => {
      const [file, folder] = [join(lab.folder, `secret-${who}`), join(lab.folder, `secrets-${who}`)]
      writeFileSync(file, 'secret')
      mkdirSync(folder)
      writeFileSync(join(folder, 'key'), 'secret')
      chmodSync(folder, 0o755)
      const read = `cat ${file}; cat ${folder}/key; ls -A ${folder}`
      const undo = `umount ${file}; umount -l ${folder}; unshare --user --map-root-user --mount sh -c 'umount ${file}; umount -l ${folder}; ${read}'`
      const { stdout, stderr } = await sh(
        who,
        ['--hide', file, '--hide', folder],
        `${read}; ${undo}; ${read}; echo end`,
      )
      assert.equal(stdout, 'end\n', stderr)
    })

    it(`as ${who}: --read-only refuses every write, and --private-tmp makes a folder for writing`, async () => {
      const other = join(lab.folder, `writable-${who}`)
      mkdirSync(other)
      chmodSync(other, 0o777)
      const tries = [
        `touch ${other}/file && echo wrote`,
        `mount -o remount,rw / && touch ${other}/file && echo wrote after remount`,
        `unshare --user --map-root-user --mount sh -c 'mount -o remount,rw,bind ${other}; touch ${other}/file' && echo wrote in a namespace`,
        'touch /dev/shm/file && echo shm',
        'top=/tmp; touch $top/file /var$top/file && ls -A $top /var$top',
        'echo thrown away >/dev/null && echo device',
      ]
      const { stdout, stderr } = await sh(who, ['--read-only', '--private-tmp'], tries.join('; '), {
        folder: '/',
      })
      assert.equal(stdout, 'shm\n/tmp:\nfile\n\n/var/tmp:\nfile\ndevice\n', stderr)
      assert.equal(existsSync(join(other, 'file')), false)
    })

    it(`as ${who}: --env-clear keeps basic variables and those of --keep`, async () => {
      const options = ['--env-clear', '--keep', 'KEPT_*']
      const env = { TOKEN: 'secret', KEPT_ONE: '1' }
      const { stdout } = await sh(who, options, 'env; tr "\\0" "\\n" </proc/1/environ', { env })
      assert.match(stdout, /^KEPT_ONE=1$/m)
      assert.match(stdout, /^PATH=/m)
      assert.doesNotMatch(stdout, /TOKEN|secret/)
    })

    it(`as ${who}: gives NODE_EXTRA_CA_CERTS to the command, and does not read its certificates`, async () => {
      // Node.js warns on stderr if it cannot read them.
      const env = { NODE_EXTRA_CA_CERTS: '/absent certificates' }
      const { stdout, stderr } = await sh(who, [], 'env | grep EXTRA_CA_CERTS', { env })
      assert.equal(stdout, 'NODE_EXTRA_CA_CERTS=/absent certificates\n')
      assert.doesNotMatch(stderr, /Warning/)
    })

    it(`as ${who}: uses the list of the project, prints its path, and keeps the command from writing it`, async () => {
      const list = join(project, '.namegate.allow')
      const script = `${CURL} -4 http://${SHOP.name}/; for way in 'echo "*" >>${list}' 'rm -f ${list}' 'mv ${list} ${list}.old'; do sh -c "$way" && echo changed; done; true`
      if (who === 'root') {
        const { stdout, stderr } = await sh(who, [], script, { folder: join(project, 'inner') })
        assert.equal(stdout, `hello from ${SHOP.address4}:80\n`, stderr)
        assert.match(
          stderr,
          new RegExp(
            `^namegate: allows what ${list} says \\(1 line\\); --no-project turns this off$`,
            'm',
          ),
        )
        const off = await sh(who, ['--no-project'], script, { folder: join(project, 'inner') })
        assert.doesNotMatch(off.stdout, /hello/)
        assert.doesNotMatch(off.stderr, /allows what/)
      } else {
        writeFileSync(join(project, 'inner', '.namegate.allow'), '*\n')
        chmodSync(join(project, 'inner', '.namegate.allow'), 0o666)
        const { stdout, stderr } = await sh(who, [], `${CURL} -4 http://${SHOP.name}/; true`, {
          folder: join(project, 'inner'),
        })
        assert.doesNotMatch(stdout, /hello/)
        assert.match(
          stderr,
          /inner\/\.namegate\.allow is not used: others can write it: chmod go-w/,
        )
      }
    })
  }

  it('reports that the command made a list for the next run', async () => {
    const folder = join(lab.folder, 'empty')
    mkdirSync(folder)
    const { stderr } = await sh('root', [], 'echo "*" >.namegate.allow', { folder })
    assert.match(
      stderr,
      /empty\/\.namegate\.allow changed during the run: read it, because the next run uses it/,
    )
  })

  it('answers a refused name with NXDOMAIN if --deny-response asks for it', async () => {
    const ask = `dig +tries=1 +time=20 ${BANK.name} | grep -o 'status: [A-Z]*'`
    const [refused, absent] = await Promise.all([
      sh('user', ['--quiet'], ask),
      sh('user', ['--quiet', '--deny-response', 'nxdomain'], ask),
    ])
    assert.equal(refused.stdout, 'status: REFUSED\n', refused.stderr)
    assert.equal(absent.stdout, 'status: NXDOMAIN\n', absent.stderr)
  })

  it('prints each refusal once while the command runs with --verbose, and a table at the end', async () => {
    const log = join(lab.folder, 'verbose')
    const tries = `${CURL} http://${BANK.name}/; ${CURL} http://${UNLEARNED_4}/; ${CURL} http://${UNLEARNED_4}/`
    // The command continues when both lines exist, so they were printed while it ran.
    const wait = `until grep -q 'refused name' ${log} && grep -q 'refused connection' ${log}; do sleep 0.1; done`
    const program = lab.commandOf('root', [
      '--verbose',
      '--',
      'sh',
      '-c',
      `${tries}; ${wait}; echo seen`,
    ])
    const words = [program.command, ...program.rest].map(
      (word) => `'${word.replaceAll("'", `'\\''`)}'`,
    )
    const { stdout } = await lab.caller.run('sh', ['-c', `${words.join(' ')} 2>${log}`], {
      limitMs: 60_000,
    })
    assert.equal(stdout, 'seen\n')
    const lines = readFileSync(log, 'utf8').split('\n')
    const told = lines.filter((line) => line.startsWith('namegate: refused'))
    assert.deepEqual(told.toSorted(), [
      `namegate: refused connection ${UNLEARNED_4}:80/tcp: no name was answered with this address: --allow ${UNLEARNED_4}:80/tcp`,
      `namegate: refused name ${BANK.name}: --allow ${BANK.name}`,
    ])
    assert.ok(lines.includes('namegate: names asked, connections refused'))
  })

  it('prints no table when nothing was refused', async () => {
    const { stderr } = await sh('user', ['--allow', SHOP.name], `${CURL} http://${SHOP.name}/`)
    assert.equal(stderr, '')
  })

  it('writes the report to a file and to a descriptor', async () => {
    const [file, passed] = [join(lab.folder, 'report.json'), join(lab.folder, 'passed.json')]
    const first = lab.commandOf('root', [
      '--quiet',
      '--report',
      file,
      '--',
      'sh',
      '-c',
      `${CURL} http://${BANK.name}/; exit 7`,
    ])
    const { code } = await lab.caller.run(first.command, first.rest, { limitMs: 60_000 })
    assert.equal(code, 7)
    const text = readFileSync(file, 'utf8')
    assert.match(
      text,
      /^\{"version":1,"code":7,"audit":false,"names":\[\{"name":"www\.bank\.test","asked":\d+,"verdict":"denied","allow":"--allow www\.bank\.test"\}\],"refused":\[\],"made":\[\],"lost":0\}\n$/,
    )
    const second = lab.commandOf('root', [
      '--quiet',
      '--report',
      '5',
      '--',
      'sh',
      '-c',
      'ls /proc/self/fd',
    ])
    const words = [second.command, ...second.rest].map((word) => `'${word}'`).join(' ')
    const inner = await lab.caller.run('sh', ['-c', `${words} 5>${passed}`], { limitMs: 60_000 })
    assert.match(readFileSync(passed, 'utf8'), /^\{"version":1,"code":0,/, inner.stderr)
    assert.doesNotMatch(inner.stdout, /^5$/m)
  })

  it('shows no hidden file in the list of processes', async () => {
    const marker = join(lab.folder, 'hidden-marker')
    const mark = `mark-${process.pid}`
    writeFileSync(marker, '')
    const started = lab.start({
      who: 'root',
      args: ['--hide', marker, '--quiet', '--', 'sh', '-c', `echo up; sleep 60; : ${mark}`],
    })
    await started.until(() => (started.stdout.includes('up') ? true : undefined), 'up', 30_000)
    const { stdout } = await lab.caller.run('ps', ['-eo', 'args'])
    const own = stdout.split('\n').filter((line) => line.includes(mark))
    assert.ok(
      own.some((line) => /Release\/sandbox run sh/.test(line)),
      stdout,
    )
    for (const line of own) assert.doesNotMatch(line.replace(/exec .*/, ''), /hidden-marker|\.sock/)
    process.kill(started.pid, 'SIGTERM')
    await started.ended(20_000)
  })

  it('reports refusals to the harness of docs/exec.md, which allows them for its second command', async () => {
    const [, program = ''] =
      /^```ts run=harness\n(.*?)^```$/ms.exec(readFileSync('docs/exec.md', 'utf8')) ?? []
    const file = join(lab.folder, 'harness.mts')
    writeFileSync(file, program)
    const { code, stdout, stderr } = await lab.caller.run(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), file],
      {
        env: {
          UPSTREAM: `${DNS_4}:53`,
          URL: `http://${SHOP.name}/`,
          PATH: `${join(process.cwd(), 'bin')}:${process.env['PATH'] ?? ''}`,
        },
        limitMs: 60_000,
      },
    )
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^exit code 6\ncurl: .*\nrefused name www\.shop\.test: --allow www\.shop\.test\nexit code 0\n/,
    )
  })
})
