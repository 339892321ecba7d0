// Where endpoints are fenced: interfaces that come later, go and are made again; sources that are not theirs; processes
// of the host in a cgroup. And what an endpoint may do while nothing at all is allowed to it: DNS to namegate.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from '../support/lab.ts'
import { DNS_4, podLab, type PodLab } from '../support/lab-pod.ts'
import { canUseNamegate, Namegate } from '../support/lab-namegate.ts'
import type { Output } from '../support/lab-process.ts'

const skip = canUseNamegate() ?? false

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const JOB = { name: 'www.job.test', address4: '198.18.41.1' }
const DENIED = '198.18.66.6'
const ZONES = {
  names: { [SHOP.name]: [SHOP.address4, SHOP.address6], [JOB.name]: [JOB.address4] },
}

function mkPolicy(app: string, egress: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${app} }
spec:
  endpointSelector: { matchLabels: { app: ${app} } }
  egress: [${egress}]
`
}

/** Asking and reaching the names under a suffix, nothing else. */
function mkNames(app: string, suffix: string): string {
  const dns = `toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*.${suffix}' }] } }]`
  return mkPolicy(app, `{ ${dns} }, { toFQDNs: [{ matchPattern: '*.${suffix}' }] }`)
}

async function curl(host: Host, url: string, ...args: readonly string[]): Promise<boolean> {
  const { code } = await host.run('curl', ['-sS', '-o', '/dev/null', '-m', '0.5', ...args, url])
  return code === 0
}

async function dig(host: Host, ...args: readonly string[]): Promise<Output> {
  return await host.run('dig', ['+tries=1', '+time=1', ...args])
}

async function fromLeast(
  times: number,
  measure: () => Promise<number>,
): Promise<readonly number[]> {
  const found: number[] = []
  for (let i = 0; i < times; i++) found.push(await measure())
  return found.toSorted((a, b) => a - b)
}

/** Milliseconds from now until `check` is true. */
async function elapsedUntil(check: () => boolean): Promise<number> {
  const began = performance.now()
  while (!check()) {
    if (performance.now() - began > 15_000) throw new Error('not in 15 s')
    await sleep(1)
  }
  return performance.now() - began
}

describe('hook on an interface', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let pod2: Host
  before(async () => {
    lab = podLab()
    pod2 = lab.lab.addHost('pod2')
    await Promise.all([lab.startNameServer(ZONES), lab.startWebServer()])
    namegate = new Namegate(lab, {
      policies: { 'shop.yaml': mkNames('shop', 'shop.test') },
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
        '{ name: pod2, addresses: [10.20.2.2], labels: { app: shop }, interface: lxc2 }',
      ],
    })
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  /** Makes pod2's interface; how long it took until the programs were on it. */
  async function makeLink(): Promise<number> {
    lab.node.ip('link', 'add', 'lxc2', 'type', 'veth', 'peer', 'eth0', 'netns', pod2.namespace)
    const elapsed = await elapsedUntil(() => namegate.isAttached('lxc2'))
    lab.node.ip('address', 'add', '10.20.2.1/24', 'dev', 'lxc2')
    lab.node.ip('link', 'set', 'lxc2', 'up')
    pod2.ip('address', 'add', '10.20.2.2/24', 'dev', 'eth0')
    pod2.ip('link', 'set', 'eth0', 'up')
    pod2.ip('route', 'add', 'default', 'via', '10.20.2.1')
    return elapsed
  }

  /** Waits until the kernel has so many endpoints. */
  async function untilEndpoints(count: number): Promise<void> {
    await elapsedUntil(() => namegate.dump().endpoints.length === count)
  }

  async function stateOfPod2(): Promise<{ enforcing: boolean; reason: string } | undefined> {
    const endpoints = (await namegate.json('get', 'endpoints')) as {
      name: string
      enforcing: boolean
      reason: string
    }[]
    return endpoints.find(({ name }) => name === 'pod2')
  }

  it('that is not there yet is no error, and the endpoint says why it is not enforced', async () => {
    assert.equal(namegate.dump().endpoints.length, 1)
    const state = await stateOfPod2()
    assert.equal(state?.enforcing, false)
    assert.match(state.reason, /lxc2 is not there/)
  })

  it('is attached within 100 ms of the interface, also when it is made again', async (t) => {
    const elapsed = await fromLeast(5, async () => {
      const time = await makeLink()
      await untilEndpoints(2)
      lab.node.ip('link', 'delete', 'lxc2')
      await untilEndpoints(1)
      return time
    })
    t.diagnostic(`attached after ${elapsed.map((time) => time.toFixed(0)).join(', ')} ms`)
    // The others may have waited for a processor that others use.
    assert.ok(elapsed[0]! < 100)
  })

  it('fences an interface that was made again under its name', async () => {
    await makeLink()
    const listener = '@10.20.1.1'
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), false)
    assert.match((await dig(pod2, listener, SHOP.name)).stdout, /status: NOERROR/)
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true)
    assert.equal(await curl(pod2, `http://${DENIED}/`), false)
    assert.equal((await stateOfPod2())?.enforcing, true)
  })

  it('gives a workload that comes after another one nothing of what that one learned', async () => {
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true, 'learned before')
    lab.node.ip('link', 'delete', 'lxc2')
    await untilEndpoints(1)
    await makeLink()
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), false)
    assert.match((await dig(pod2, '@10.20.1.1', SHOP.name)).stdout, /status: NOERROR/)
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true)
  })

  it('drops and counts what has a source that is not the endpoint’s', async () => {
    const { host, gateway4, gateway6 } = lab.pods[0]!
    await dig(host, `@${gateway4}`, SHOP.name, 'A', SHOP.name, 'AAAA')
    host.ip('address', 'add', '10.20.1.77/24', 'dev', 'eth0')
    host.ip('address', 'add', 'fd20:1::77/64', 'dev', 'eth0', 'nodad')
    const reached = { 4: `http://${SHOP.address4}/`, 6: `http://[${SHOP.address6}]/` }
    for (const [url, own, foreign, listener] of [
      [reached[4], '10.20.1.2', '10.20.1.77', gateway4],
      [reached[6], 'fd20:1::2', 'fd20:1::77', gateway6],
    ] as const) {
      assert.equal(await curl(host, url, '--interface', own), true)
      const before = await namegate.stat('drop_source')
      assert.equal(await curl(host, url, '--interface', foreign), false)
      const between = await namegate.stat('drop_source')
      assert.ok(between > before, 'the SYN was counted')
      assert.notEqual((await dig(host, '-b', foreign, `@${listener}`, SHOP.name)).code, 0)
      assert.ok((await namegate.stat('drop_source')) > between, 'the query was counted')
    }
  })
})

describe('hook of an endpoint to which nothing is allowed', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    await Promise.all([lab.startNameServer(ZONES), lab.startWebServer()])
    namegate = new Namegate(lab, {
      policies: { 'nothing.yaml': mkPolicy('shop', '{}') },
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
      ],
    })
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('lets DNS to the listener through, over UDP and TCP, and nothing else', async () => {
    assert.deepEqual(namegate.policies(), [])
    const { host, gateway4, gateway6 } = lab.pods[0]!
    for (const listener of [gateway4, gateway6]) {
      for (const over of ['+notcp', '+tcp']) {
        const { stdout } = await dig(host, `@${listener}`, over, SHOP.name)
        assert.match(stdout, /status: NOERROR/)
      }
    }
    for (const url of [`http://${SHOP.address4}/`, `http://[${SHOP.address6}]/`]) {
      assert.equal(await curl(host, url), false)
    }
    assert.equal(await curl(host, `http://${gateway4}/`), false, 'other ports of the node')
    assert.equal((await host.run('ping', ['-c', '1', '-W', '0.3', gateway4])).code === 0, false)
    assert.notEqual((await dig(host, `@${DNS_4}`, SHOP.name)).code, 0, 'other resolvers')
  })
})

/** Where cgroup2 is mounted; undefined when it is not. */
function findCgroups(): string | undefined {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const mount = mounts.find((line) => / - cgroup2 /.test(line))
  return mount?.split(' ')[4]
}

const cgroups = findCgroups()

describe(
  'hook on a cgroup',
  { skip: cgroups === undefined ? 'no cgroup2 is mounted' : skip },
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

    /** A command on the node, in the cgroup. */
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
        '0.5',
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

    it('fences the processes in it and no others of the node', async () => {
      assert.equal(await reaches(DENIED), false)
      assert.equal(await curl(lab.node, `http://${DENIED}/`), true)
    })

    it('tells whose query it is: each endpoint may ask its own names', async () => {
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

    it('lets the processes reach what they asked for', async () => {
      assert.equal(await reaches(JOB.address4), true)
      assert.equal(await reaches(SHOP.address4), false)
    })
  },
)
