// The lab of the other kernel tests: its hosts reach each other, its servers answer, and it removes what it made.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { canUseLab } from '../support/labs/lab.ts'
import { DNS_4, DNS_6, podLab, type PodLab } from '../support/labs/lab-pod.ts'

const skip = canUseLab() ?? false

function namespacesOf(pid: number): string[] {
  return readdirSync('/run/netns').filter((name) => name.startsWith(`ng-${pid}-`))
}

describe('podLab', { skip }, () => {
  let lab: PodLab
  before(async () => {
    lab = podLab({ pods: 2 })
    await lab.startNameServer({
      names: {
        'www.example.com': ['198.18.5.1', '2001:db8:80::1'],
        'alias.example.com': ['-> www.example.com'],
      },
      pools: { 's3.example.com': { first: '198.18.0.0', size: 1000, perAnswer: 8, ttl: 5 } },
      fresh: { 'fresh.example': { first4: '198.19.0.1', first6: '2001:db8:80:1::1' } },
    })
    await lab.startWebServer()
  })
  after(async () => {
    await lab.close()
    assert.deepEqual(namespacesOf(process.pid), [])
  })

  async function dig(...args: readonly string[]): Promise<string[]> {
    const output = await lab.pods[0]!.host.run('dig', ['+short', '+tries=1', '+time=2', ...args])
    assert.equal(output.code, 0, output.stdout + output.stderr)
    return output.stdout.trim().split('\n')
  }

  it('gives every pod both families through the node', async () => {
    for (const { host } of lab.pods) {
      for (const url of ['http://198.18.9.9/', 'http://[2001:db8:80::9]/']) {
        const { stdout } = await host.run('curl', ['-sS', '-m', '3', url])
        assert.equal(stdout, `hello from ${url.slice(7, -1)}:80\n`)
      }
    }
  })

  it('startNameServer answers over UDP, TCP, IPv4 and IPv6', async () => {
    assert.deepEqual(await dig(`@${DNS_4}`, 'www.example.com'), ['198.18.5.1'])
    assert.deepEqual(await dig(`@${DNS_6}`, '+tcp', 'www.example.com', 'AAAA'), ['2001:db8:80::1'])
    assert.deepEqual(await dig(`@${DNS_4}`, '+tcp', 'alias.example.com'), [
      'www.example.com.',
      '198.18.5.1',
    ])
  })

  it('startNameServer rotates a pool through all of its addresses', async () => {
    const seen = new Set<string>()
    const questions = Array.from({ length: 125 }, () => 's3.example.com')
    for (const address of await dig(`@${DNS_4}`, ...questions)) seen.add(address)
    assert.equal(seen.size, 1000)
  })

  it('startNameServer gives each fresh name its own address, and keeps it', async () => {
    const first = await dig(`@${DNS_4}`, 'a.fresh.example', 'b.fresh.example', 'A.fresh.example')
    assert.deepEqual(first, ['198.19.0.1', '198.19.0.2', '198.19.0.1'])
    assert.deepEqual(await dig(`@${DNS_4}`, 'b.fresh.example', 'AAAA'), ['2001:db8:80:1::2'])
  })

  it('startNameServer answers NXDOMAIN for other names', async () => {
    const { stdout } = await lab.pods[1]!.host.run('dig', [
      `@${DNS_4}`,
      '+tries=1',
      'nowhere.example',
    ])
    assert.match(stdout, /status: NXDOMAIN/)
  })
})

describe('Lab', { skip }, () => {
  const maker = fileURLToPath(new URL('../support/labs/lab-pod.ts', import.meta.url))
  const script = `const { podLab } = await import(${JSON.stringify(maker)}); podLab(); console.log('made'); setInterval(() => {}, 1000)`

  async function makeElsewhere(): Promise<ReturnType<typeof spawn>> {
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', script],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    if (child.stdout !== null) await once(child.stdout, 'data')
    assert.equal(namespacesOf(child.pid ?? 0).length, 3)
    return child
  }

  it('removes its namespaces when the process is interrupted', async () => {
    const child = await makeElsewhere()
    child.kill('SIGINT')
    await once(child, 'exit')
    assert.deepEqual(namespacesOf(child.pid ?? 0), [])
  })

  it('removes what a killed run left, with the processes in it', async () => {
    const child = await makeElsewhere()
    const [left = ''] = namespacesOf(child.pid ?? 0)
    const sleeper = spawn('nsenter', [`--net=/run/netns/${left}`, 'sleep', '60'], {
      stdio: 'ignore',
    })
    while (
      !execFileSync('ip', ['netns', 'pids', left], { encoding: 'utf8' }).includes(`${sleeper.pid}`)
    ) {
      await sleep(10)
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    const ended = once(sleeper, 'exit')
    await podLab().close()
    await ended
    assert.deepEqual(namespacesOf(child.pid ?? 0), [])
  })
})
