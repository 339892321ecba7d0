// A user adds lines to the list of a running `namegate up`. A killed run leaves them to the next run for the same workload, and an ordinary
// end prints them. Two runs never share a list.

import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import type { Output } from '../../support/labs/lab-process.ts'
import { ALLOWED, OTHER, UpLab, type UpRun } from '../../support/labs/up-lab.ts'
import { until } from '../../support/peers/client.ts'

const LIMIT_MS = 90_000
/** Holds the lock for the rules of interception in two network namespaces. Its arguments: the folder with the locks, then the namespaces. */
const HOLD =
  'exec 8>>"$1/interception-$(stat -Lc %i "$2").lock" 9>>"$1/interception-$(stat -Lc %i "$3").lock" && flock 8 && flock 9 && echo held && exec sleep 300'
const NEXT_TIME = /allow these next time: (.*)/

describe('lines added while namegate up runs', { skip: canUseNamegate() ?? false }, () => {
  let lab: UpLab
  let box = ''
  let list = ''

  function start(...more: readonly string[]): UpRun {
    return lab.up(DNS_4, '--netns', box, '--allow', ALLOWED, ...more)
  }

  async function isAllowed(name: string): Promise<boolean> {
    return (await lab.fetch(lab.pod(0).host, name, 2)) === '200'
  }

  async function kill(run: UpRun): Promise<Output | undefined> {
    const { stdout } = await run.command('/', 'status', '-o', 'json')
    process.kill(Number(/"pid": (\d+)/.exec(stdout)?.[1]), 'SIGKILL')
    return await run.process.ended(LIMIT_MS)
  }

  before(async () => {
    lab = new UpLab(1)
    await lab.serve()
    box = lab.pod(0).host.namespace
    list = join(lab.shared, `up-${box}/policies/up.allow`)
  })
  after(async () => await lab.close())

  it('stay allowed after the daemon was killed, until an ordinary end prints them', async () => {
    const first = start()
    await first.protects()
    appendFileSync(list, `${OTHER}  # for the test\n`)
    await until('the new name is allowed', async () => await isAllowed(OTHER))
    // The second line has a fault, and the last one has no line end.
    appendFileSync(list, `not a name\nhalf.test`)
    assert.equal((await kill(first))?.code, 3)

    // The start fails because another process holds a lock that the daemon needs: that of the host, or inside the namespace its own.
    const namespaces = [lab.node, lab.pod(0).host].map(({ namespace }) => `/run/netns/${namespace}`)
    const holder = lab.node.start('sh', ['-c', HOLD, 'sh', lab.shared, ...namespaces])
    await holder.untilOutput(/held/, LIMIT_MS)
    const failing = start().process
    const failed = await failing.ended(LIMIT_MS)
    assert.ok(failed !== undefined, `the start does not end: ${failing.stdout}${failing.stderr}`)
    assert.notEqual(failed.code, 0, 'a start that fails')
    assert.match(failed.stderr, /left out "not a name": /)
    await holder.stop()
    const again = start()
    await again.protects()
    assert.equal(await lab.fetch(lab.pod(0).host, OTHER), '200')
    const { stdout, stderr = '' } = (await again.end()) ?? {}
    assert.match(stderr, /killed.*: other\.test, half\.test.*without them/)
    const wanted = `up --netns ${box} --allow ${ALLOWED} --allow ${OTHER} --allow half.test`
    assert.ok(NEXT_TIME.exec(stdout ?? '')?.[1]?.includes(wanted), stdout)
    assert.match(stdout ?? '', /--write DIR/)

    const fresh = start()
    await fresh.protects()
    assert.ok(!(await isAllowed(OTHER)), 'an ordinary end drops the lines')
    const last = await fresh.end()
    assert.doesNotMatch(`${last?.stdout}${last?.stderr}`, NEXT_TIME)
    assert.doesNotMatch(last?.stderr ?? '', /killed/)
    assert.deepEqual(readdirSync(lab.shared), [], 'the folder is empty')
  })

  it('are printed also when the user replaced the list by a new file in a folder that --write keeps', async () => {
    const folder = join(lab.folder, 'kept')
    const run = start('--write', folder)
    await run.protects()
    writeFileSync(join(folder, 'policies/up.allow'), `${OTHER}\n`)
    await until('the new name is allowed', async () => await isAllowed(OTHER))
    const { stdout = '' } = (await run.end()) ?? {}
    assert.match(NEXT_TIME.exec(stdout)?.[1] ?? '', / --write \S+ --allow other\.test --force$/)
  })

  it('belong to one run: a second run for the same workload does not start', async () => {
    const runs = [start(), start()]
    const ended = await Promise.race(
      runs.map(async (run) => ({ run, output: await run.process.ended(LIMIT_MS) })),
    )
    assert.equal(ended.output?.code, 3, ended.output?.stderr)
    assert.match(ended.output.stderr, /is in use by|already protects/)
    const [other] = runs.filter((run) => run !== ended.run)
    await other?.protects()
    assert.ok(existsSync(list) && readFileSync(list, 'utf8').includes(ALLOWED))
    assert.equal((await other?.end())?.code, 0)
    assert.deepEqual(readdirSync(lab.shared), [], 'the folder is empty')
  })

  it('name the files of the user when a daemon runs with what --write saved: the advice of a second up ends it', async () => {
    const folder = join(lab.folder, 'saved')
    const first = start('--write', folder)
    await first.protects()
    assert.equal((await first.end())?.code, 0)
    const file = join(folder, 'namegate.yaml')
    const daemon = lab.daemon(DNS_4, file)
    // Without --config, a command that comes before the mounts of this run asks a daemon of this machine.
    await until('the daemon is ready', async () => {
      return (await daemon.command('/', 'status', '--ready', '--config', file)).code === 0
    })
    const refused = await lab.refused(DNS_4, '--netns', box, '--allow', ALLOWED)
    assert.equal(refused.code, 3, refused.stderr)
    assert.match(refused.stderr, /A daemon already protects/)
    const [, to = ''] = /To allow more: echo NAME >> (\S+)\n/.exec(refused.stderr) ?? []
    assert.equal(to, join(folder, 'policies/up.allow'))
    const commands = [...refused.stderr.matchAll(/^ +((?:\S*namegate|rm) .*)$/gm)].map(
      ([, text]) => text,
    )
    assert.equal(commands.length, 3, refused.stderr)
    assert.match(
      commands[0] ?? '',
      new RegExp(` datapath detach --config ${folder}/namegate.yaml `),
    )
    // One shell, as in a terminal: the first command ends the daemon, and with it the way into its mounts.
    const { code, stderr } = await daemon.run('sh', '-ec', commands.join('\n'))
    assert.equal(code, 0, `${commands.join('; ')}: ${stderr}`)
    assert.equal((await daemon.process.ended(LIMIT_MS))?.code, 0)
    assert.deepEqual(readdirSync(lab.shared), [], 'the folder is empty')
  })
})
