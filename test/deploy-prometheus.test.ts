// A real Prometheus, as Debian ships it, scrapes a daemon by the configuration in deploy/prometheus, and the metrics
// that its alerts ask for are there.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { http } from './support/nodes/admin.ts'
import { endpointsText, policyText } from './support/nodes/daemon-files.ts'
import { DaemonFolder, freePort } from './support/nodes/daemon-process.ts'
import { LabProcess, run } from './support/labs/lab-process.ts'

const PROMETHEUS = resolve('build/tools/prometheus')
const PROMTOOL = resolve('build/tools/promtool')
const LEFT_OUT = existsSync(PROMETHEUS)
  ? false
  : 'build/tools/prometheus is not there (npm test gets it)'

const folder = new DaemonFolder({
  files: {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    'alerts.yml': readFileSync('deploy/prometheus/alerts.yml', 'utf8'),
  },
})
const processes: LabProcess[] = []
after(async () => {
  await Promise.all(processes.map(async (each) => await each.stop()))
  folder.remove()
})

async function query(port: number, expression: string): Promise<string | undefined> {
  const path = `/api/v1/query?query=${encodeURIComponent(expression)}`
  const { text } = await http({ port }, path)
  return /"value":\[[\d.]+,"([^"]*)"\]/.exec(text)?.[1]
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; await sleep(200)) {
    if (await look().catch(() => false)) return
  }
  assert.fail(`no ${what} within 30 s`)
}

test('deploy/prometheus passes the check of promtool', { skip: LEFT_OUT }, async () => {
  const args = ['check', 'config', resolve('deploy/prometheus/prometheus.yml')]
  const { code, stdout, stderr } = await run(PROMTOOL, args)
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /SUCCESS: \d+ rules found/)
})

test('deploy/prometheus lets Prometheus scrape a daemon', { skip: LEFT_OUT }, async () => {
  const [metrics, web] = [await freePort(), await freePort()]
  folder.configure({ metrics: `{ address: 127.0.0.1, port: ${metrics} }` })
  processes.push((await folder.serve()).process)
  const text = readFileSync('deploy/prometheus/prometheus.yml', 'utf8')
  assert.ok(text.includes("'127.0.0.1:9465'") && text.includes('scrape_interval: 15s'))
  folder.write('prometheus.yml', text.replace('9465', `${metrics}`).replace('15s', '1s'))
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data']
  const address = `--web.listen-address=127.0.0.1:${web}`
  processes.push(new LabProcess(PROMETHEUS, [...args, address], { cwd: folder.path }))
  await until('scrape', async () => (await query(web, 'up{job="namegate"}')) === '1')
  assert.equal(await query(web, 'namegate_policy_files{state="in-force"}'), '1')
  const alerts = readFileSync('deploy/prometheus/alerts.yml', 'utf8')
  for (const [name] of alerts.matchAll(/namegate_[a-z_]+/g)) {
    const found = await query(web, `count(${name})`)
    assert.ok(Number(found) > 0, `${name} of an alert is a metric of the daemon`)
  }
  folder.write('metrics.txt', (await http({ port: metrics }, '/metrics')).text)
  const check = await run('sh', ['-c', `'${PROMTOOL}' check metrics <metrics.txt`], {
    cwd: folder.path,
  })
  assert.equal(check.code, 0, `promtool on the metrics: ${check.stdout}${check.stderr}`)
})
