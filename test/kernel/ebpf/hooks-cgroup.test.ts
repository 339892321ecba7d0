// Processes of the host in a cgroup that is an endpoint.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import type { Output } from '../../support/labs/lab-process.ts'
import {
  curl,
  DENIED,
  dig,
  elapsedUntil,
  JOB,
  mkNames,
  SHOP,
  ZONES,
} from '../../support/labs/hook-lab.ts'

/** The mount point of cgroup2, or undefined. */
function findCgroups(): string | undefined {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const mount = mounts.find((line) => / - cgroup2 /.test(line))
  return mount?.split(' ')[4]
}

const cgroups = findCgroups()

describe(
  'hook on a cgroup',
  { skip: cgroups === undefined ? 'no cgroup2 is mounted' : (canUseNamegate() ?? false) },
  () => {
    const name = `ng-test-${process.pid}.slice`
    const folder = join(cgroups ?? '/', name)
    let lab: PodLab
    let namegate: Namegate
    before(async () => {
      lab = podLab()
      await lab.startNameServer(ZONES)
      await lab.startWebServer()
      namegate = new Namegate(lab, {
        policies: {
          'job.yaml': mkNames('job', 'job.test'),
          'shop.yaml': mkNames('shop', 'shop.test'),
        },
        endpoints: [
          `{ name: job, labels: { app: job }, cgroup: ${name} }`,
          "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
        ],
        listeners: ['127.0.0.1', '10.20.1.1'],
      })
      await namegate.start()
    })
    after(async () => {
      await namegate.close()
      await lab.close()
      rmdirSync(folder)
    })

    /** Runs a command on the node, in the cgroup. */
    async function inside(command: string, ...args: readonly string[]): Promise<Output> {
      const script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
      return await lab.node.run('sh', ['-c', script, folder, command, ...args])
    }

    async function reaches(address: string): Promise<boolean> {
      const { code } = await inside(
        'curl',
        '-sS',
        '-o',
        '/dev/null',
        '-m',
        '1.5',
        `http://${address}/`,
      )
      return code === 0
    }

    it('is attached within 100 ms of the cgroup', async (t) => {
      let least = Infinity
      for (let i = 0; i === 0 || (least >= 100 && i < 5); i++) {
        if (i > 0) {
          rmdirSync(folder)
          await elapsedUntil(() => namegate.dump().endpoints.length === 1)
        }
        mkdirSync(folder)
        const elapsed = await elapsedUntil(() => namegate.dump().endpoints.length === 2)
        t.diagnostic(`attached after ${elapsed.toFixed(0)} ms`)
        least = Math.min(least, elapsed)
      }
      assert.ok(least < 100)
    })

    it('fences the processes in it, and no other process of the node', async () => {
      assert.equal(await reaches(DENIED), false)
      assert.equal(await curl(lab.node, `http://${DENIED}/`), true)
    })

    it('decides by endpoint: each can ask its own names', async () => {
      const ask = async (asked: string, ...args: readonly string[]) =>
        (await inside('dig', '@127.0.0.1', '+tries=1', '+time=1', asked, ...args)).stdout
      for (const over of ['+notcp', '+tcp']) {
        assert.match(await ask(JOB.name, over), /status: NOERROR/)
        assert.match(await ask(SHOP.name, over), /status: REFUSED[^]*EDE: 15/)
      }
      const { host, gateway4 } = lab.pods[0]!
      assert.match((await dig(host, `@${gateway4}`, SHOP.name)).stdout, /status: NOERROR/)
      const foreign = await lab.node.run('dig', ['@127.0.0.1', '+tries=1', '+time=3', JOB.name])
      assert.match(foreign.stdout, /status: REFUSED[^]*EDE: 18/, 'a process of no endpoint')
    })

    it('lets the processes reach the addresses of their names', async () => {
      assert.equal(await reaches(JOB.address4), true)
      assert.equal(await reaches(SHOP.address4), false)
    })
  },
)
