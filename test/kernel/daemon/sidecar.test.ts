// Runs the containers of deploy/kubernetes/overlays/sidecar/sidecar.yaml on the real kernel, one after the other, with exactly the rights
// of the manifest, in the network namespace of a pod. After the first step the application can reach nothing. When the sidecar is ready,
// the application can reach what policy allows. After the removal nothing is left.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBuilt } from '../../../src/native/native.ts'
import { canUseContainers } from '../../support/labs/container-command.ts'
import { settings, snapshot } from '../../support/labs/intercept-lab.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { DNS_4, OTHER_DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { Leaks } from '../../support/labs/leaks.ts'
import { SidecarPod } from '../../support/labs/sidecar.ts'

const NAME = 'www.example.com'
const ALLOWED = '198.18.0.1'
const OTHER = '198.18.0.2'
const ZONES = { names: { [NAME]: [ALLOWED, '2001:db8:80::1'], 'other.test': [OTHER] } }

const skip =
  canUseLab() ??
  canUseContainers() ??
  (isBuilt('nftables') ? false : 'the native part is not built')

describe('the sidecar of deploy/kubernetes', { skip }, () => {
  let lab: PodLab
  let pod: SidecarPod
  let leaks: Leaks
  let proxy: LabProcess
  let application: LabProcess
  let untouched: readonly (readonly string[])[]

  before(async () => {
    lab = podLab()
    pod = new SidecarPod(host(), DNS_4)
    await lab.startNameServer(ZONES)
    await lab.startWebServer([80, 443])
    leaks = new Leaks(lab.internet, ['10.20.0.0/16', 'fd20::/16'])
    untouched = look()
  })
  after(async () => {
    await lab.close()
    pod.close()
  })

  const host = () => lab.pods[0]!.host
  const look = () => [snapshot(host()), settings(host())]

  /** The HTTP status, or `000` without a connection. */
  async function get(address: string, port: number, limit = '1'): Promise<string> {
    const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/`
    const { stdout } = await host().run('curl', [
      '-s',
      '-m',
      limit,
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      url,
    ])
    return stdout
  }

  /** Gets several addresses at once, each written as `ADDRESS PORT`. */
  async function getAll(...wanted: readonly string[]): Promise<readonly string[]> {
    return await Promise.all(
      wanted.map(async (each) => {
        const [address = '', port = ''] = each.split(' ')
        return await get(address, Number(port))
      }),
    )
  }

  async function ask(name: string, server = OTHER_DNS_4): Promise<string> {
    const { stdout } = await host().run('dig', [
      '+tries=1',
      '+time=1',
      '+noall',
      '+comments',
      '+answer',
      `@${server}`,
      name,
    ])
    return /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
  }

  /** Asks from outside the pod, as the kubelet does. */
  async function readiness(): Promise<string> {
    const { startupProbe } = pod.container('namegate')
    const { path, port } = startupProbe?.httpGet ?? {}
    const url = `http://${lab.pods[0]!.address4}:${port}${path}`
    return (await lab.node.run('curl', ['-s', '-m', '1', '-w', ' %{http_code}', url])).stdout
  }

  async function untilReady(): Promise<void> {
    for (const end = performance.now() + 60_000; ; await sleep(50)) {
      if ((await readiness()).endsWith(' 200')) return
      assert.ok(
        proxy.running && performance.now() < end,
        `not ready: ${await readiness()}\n${proxy.stderr}`,
      )
    }
  }

  it('has three steps, and no capability but CAP_NET_ADMIN', () => {
    assert.deepEqual(
      pod.manifest.init.map(({ name, restartPolicy = '', securityContext }) => [
        name,
        restartPolicy,
        securityContext.capabilities.add,
      ]),
      [
        ['namegate-close', '', ['NET_ADMIN']],
        ['namegate-intercept', '', ['NET_ADMIN']],
        ['namegate', 'Always', ['NET_ADMIN']],
      ],
    )
    for (const { securityContext } of pod.manifest.containers) {
      assert.equal(securityContext.capabilities.add, undefined)
    }
  })

  it('reaches everything before the first step, so the other tests prove something', async () => {
    assert.deepEqual(
      [...(await getAll(`${ALLOWED} 443`, `${OTHER} 80`)), await ask(NAME)],
      ['200', '200', 'NOERROR'],
    )
  })

  it('fails each step without the capability, with an error that names it', async () => {
    for (const { name } of pod.manifest.init) {
      const { code, stderr } = await pod.run(name, undefined, ['NET_ADMIN'])
      assert.equal(code, 3, stderr)
      assert.match(stderr, /CAP_NET_ADMIN|permitted/, name)
    }
    assert.deepEqual(look(), untouched)
  })

  it('is closed by the first steps: no connection and no query leaves', async () => {
    for (const name of ['namegate-close', 'namegate-intercept']) {
      const { code, stderr } = await pod.run(name)
      assert.deepEqual([code, stderr], [0, ''], name)
    }
    const from = leaks.count
    assert.deepEqual(await getAll(`${ALLOWED} 443`, `${OTHER} 80`), ['000', '000'])
    assert.deepEqual([await ask(NAME), await ask(NAME, DNS_4)], ['no answer', 'no answer'])
    assert.equal(leaks.count, from)
    application = pod.startApplication(
      `until curl -s -m 1 -o /dev/null http://${NAME}:443/; do sleep 0.1; done; echo reached`,
    )
  })

  it('stays the same when the first steps run again', async () => {
    assert.equal(
      (await pod.run('namegate-close')).stdout,
      'closed: nothing\nalready closed or enforced: pod\n',
    )
  })

  it('lets an application that started before through when policy is in force', async () => {
    assert.ok(!application.stdout.includes('reached'))
    proxy = pod.start('namegate')
    await untilReady()
    await application.untilOutput(/^reached$/m)
    assert.deepEqual([await ask(NAME), await ask('other.test')], ['NOERROR', 'REFUSED'])
    assert.deepEqual(await getAll(`${ALLOWED} 443`, '2001:db8:80::1 443'), ['200', '200'])
    assert.deepEqual(
      await getAll(`${ALLOWED} 80`, `${OTHER} 443`),
      ['000', '000'],
      'another port, another address',
    )
  })

  it('continues to enforce when the proxy is killed, and answers again with the next proxy', async () => {
    proxy.kill('SIGKILL')
    await proxy.ended(30_000)
    assert.deepEqual(
      [...(await getAll(`${ALLOWED} 443`, `${OTHER} 443`)), await ask(NAME)],
      ['200', '000', 'no answer'],
    )
    proxy = pod.start('namegate')
    await untilReady()
    assert.deepEqual(
      [await ask(NAME), ...(await getAll(`${ALLOWED} 443`, `${OTHER} 443`))],
      ['NOERROR', '200', '000'],
    )
  })

  it('is removed without a trace', async () => {
    await proxy.stop()
    assert.equal(await get(OTHER, 443), '000', 'an orderly stop opens nothing')
    const config = ['--config', '/etc/namegate/namegate.yaml']
    for (const args of [
      ['datapath', 'detach'],
      ['intercept', 'down'],
    ]) {
      const { code, stderr } = await pod.run('namegate', [...args, ...config])
      assert.deepEqual([code, stderr], [0, ''], args.join(' '))
    }
    const [rules, set] = look()
    assert.deepEqual(rules, untouched[0])
    assert.deepEqual(set, untouched[1])
    assert.deepEqual(
      [...(await getAll(`${ALLOWED} 80`, `${OTHER} 443`)), await ask('other.test')],
      ['200', '200', 'NOERROR'],
    )
  })
})
