// npm run packages -- oci: builds the archive of the image (scripts/image-oci.sh), unpacks it, and runs it with crun as
// containers with exactly the rights of the documents: on a node of Kubernetes, with `docker run`, and DNS-only. Prints a table.
// With --built it takes the archive in build/.

import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { runIn } from '../support/labs/intercept-lab.ts'
import { run } from '../support/labs/lab-process.ts'
import { firstConnections } from './first-connections.ts'
import { isWhole, lossDuring, lossText } from './load.ts'
import { dockerForm, nodeForm } from './oci-forms.ts'
import { OciTrial } from './oci-trial.ts'
import { changesOf } from './traces.ts'
import { withReport, type Step } from './steps.ts'

const VERSION = /"version": "(.*)"/.exec(readFileSync('package.json', 'utf8'))?.[1] ?? ''
const NEWER = '99.0.0'
const ARCHIVE = `build/namegate-${VERSION}.oci.tar`
const BUILD_MS = 1_800_000
const LIMIT_MS = 60_000
const TRIES = 5
/** After a failed take-over, the source waits some time before it listens for a successor again. */
const PAUSE_MS = 5000
const TITLE = 'org.opencontainers.image.'

await withReport('image', async (step) => {
  await step('build from the Dockerfile', async () => {
    if (!process.argv.includes('--built')) {
      const { code, stderr } = await run('sh', ['scripts/image-oci.sh'], { limitMs: BUILD_MS })
      assert.equal(code, 0, stderr)
    }
    return `${(statSync(ARCHIVE).size / 1e6).toFixed(1)} MB`
  })
  const trial = new OciTrial(ARCHIVE)
  try {
    await tryContent(trial, step)
    await trial.site.serve()
    await tryDocker(trial, step)
    await tryDnsOnly(trial, step)
    await tryNode(trial, step)
  } finally {
    await trial.close()
  }
})

async function tryContent(trial: OciTrial, step: Step): Promise<void> {
  const { image } = trial
  await step('unpack: labels, HEALTHCHECK, user', () => {
    const { Labels, Healthcheck } = image.config
    assert.equal(Labels[`${TITLE}title`], 'namegate')
    assert.equal(Labels[`${TITLE}version`], VERSION)
    assert.equal(Labels[`${TITLE}licenses`], 'Apache-2.0')
    assert.match(Labels[`${TITLE}revision`] ?? '', /^[0-9a-f]{40}$/)
    assert.deepEqual(Healthcheck.Test.slice(2), ['status', '--ready'])
    assert.equal(trial.idOf('namegate'), 10053)
    const size = Number(trial.sizeMb().toFixed(0))
    return Promise.resolve(`${size} MB unpacked, ${image.digest.slice(0, 19)}`)
  })
}

async function tryNode(trial: OciTrial, step: Step): Promise<void> {
  const { site } = trial
  const form = nodeForm()
  const before = trial.traces()
  const settings = trial.settings(form.configuration)
  const first = trial.start(form, settings)
  await step('node: start, HEALTHCHECK', async () => {
    const early = await first.health()
    assert.notEqual(early.code, 0, 'not healthy at once')
    return `healthy after ${await first.untilHealthy()} ms`
  })
  await step('node: first protected connection, and refused ones', async () => {
    const { allowed, name, address, isProtected, ms } = await firstConnections(site)
    assert.ok(isProtected, first.log)
    return `allowed ${allowed}, name ${name}, address ${address}, after ${ms} ms`
  })
  const known = await trial.json(first, 'get', 'identities')
  const args = [...form.args, '--take-over']
  const next = { ...form, args, image: trial.newer(NEWER) }
  await step('node: upgrade under 1,000 queries a second', async () => {
    let tries = 0
    const loss = await lossDuring(site, async () => {
      while (first.running && tries < TRIES) {
        if (tries++ > 0) await sleep(PAUSE_MS)
        const second = trial.start(next, settings)
        // One of the two ends: the source, or on a busy machine a successor that was late.
        await Promise.race([first.ended(LIMIT_MS), second.ended(LIMIT_MS)])
      }
      assert.equal((await first.ended(LIMIT_MS))?.code, 0, first.log + trial.last.log)
      await trial.last.untilHealthy()
    })
    assert.ok(isWhole(loss), lossText(loss))
    return `${lossText(loss)}${tries > 1 ? `; ${tries} tries` : ''}`
  })
  const second = trial.last
  await step('node: the newer version has the state of the older one', async () => {
    const { version } = (await trial.json(second, 'status')) as { version: string }
    assert.equal(version, NEWER)
    const identities = (await trial.json(second, 'get', 'identities')) as readonly unknown[]
    const ids = (each: unknown): readonly unknown[] =>
      (each as { identity: unknown }[]).map((one) => one.identity)
    assert.ok(ids(known).every((id) => ids(identities).includes(id)))
    assert.ok((await firstConnections(site)).isProtected, second.log)
    return `version ${version}, ${identities.length} identities`
  })
  await step('node: removal leaves no trace', async () => {
    assert.equal((await second.stop())?.code, 0, second.log)
    for (const words of ['intercept down', 'datapath detach']) {
      const command = trial.start({ ...next, args: words.split(' ') }, settings)
      const ended = await command.ended(LIMIT_MS)
      assert.equal(ended?.code, 0, command.log)
    }
    const files = await trial.remove()
    assert.deepEqual(changesOf(before, trial.traces()), [])
    return `${files} files in the mounted folders`
  })
}

async function tryDocker(trial: OciTrial, step: Step): Promise<void> {
  await step('docker run of the Dockerfile: answers by the policy of the image', async () => {
    const before = trial.traces()
    const container = trial.start(dockerForm('Dockerfile', 'docker run'))
    const ms = await container.untilHealthy()
    const answers = askExamples(trial)
    assert.deepEqual(answers, ['NOERROR', 'REFUSED'], container.log)
    await container.exec('namegate', 'datapath', 'detach')
    await trial.remove()
    assert.deepEqual(changesOf(before, trial.traces()), [])
    return `healthy after ${ms} ms, ${answers.join(' and ')}, no trace`
  })
}

async function tryDnsOnly(trial: OciTrial, step: Step): Promise<void> {
  await step('DNS-only: no root, no capability, read-only', async () => {
    const before = trial.traces()
    const container = trial.start(dockerForm('docs/image.md', '--user'))
    const ms = await container.untilHealthy()
    const answers = askExamples(trial)
    assert.deepEqual(answers, ['NOERROR', 'REFUSED'], container.log)
    const { stdout } = await container.exec('grep', '-hE', '^(Uid|CapEff|CapBnd)', '/proc/1/status')
    assert.match(stdout, /Uid:\s10053\s10053/)
    assert.match(stdout, /CapEff:\s0+$/m)
    assert.equal((await container.stop())?.code, 0, container.log)
    await trial.remove()
    assert.deepEqual(changesOf(before, trial.traces()), [])
    return `healthy after ${ms} ms, ${answers.join(' and ')}, no trace`
  })
}

/** The RCODEs for an allowed and a denied name of the image's policy. */
function askExamples({ site }: OciTrial): readonly string[] {
  return ['example.com', 'example.net'].map((name) => {
    const { stdout } = runIn(site.node, ['dig', '@127.0.0.1', '-p', '5300', '+tries=1', name])
    return /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
  })
}
