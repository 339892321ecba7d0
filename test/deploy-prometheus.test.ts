// A real Prometheus of Debian scrapes a daemon by the configuration in deploy/prometheus, and every expression of the dashboards in
// deploy/grafana returns data of this daemon.

import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { http } from './support/nodes/admin.ts'
import { endpointsText, policyText } from './support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from './support/nodes/daemon-process.ts'
import { freePort } from './support/nodes/free-port.ts'
import { NEEDS_PROMETHEUS, Prometheus, untilTrue } from './support/nodes/prometheus.ts'
import { metricNames } from './support/metric-names.ts'
import { FakeUpstream } from './support/peers/upstream.ts'
import { run } from './support/labs/lab-process.ts'

const PROMTOOL = resolve('build/tools/promtool')

/** Expressions without data until an event, each with the event. */
const EVENT_ONLY: readonly (readonly [part: RegExp, reason: string])[] = [
  [/namegate_intercept_in_force/, 'the daemon needs a transparent listener, and so root'],
  [/le, stage.*namegate_dns_hold_seconds_bucket/, 'the memory datapath confirms at once'],
  [/namegate_limit_hits_total.* > 0$/, 'no bound is reached'],
]

interface Target {
  readonly expr: string
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly datasource?: { readonly uid: string }
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly Target[]
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; definition?: string }[]
  }
}

function readDashboards(): ReadonlyMap<string, Dashboard> {
  const names = readdirSync('deploy/grafana').filter((name) => name.endsWith('.json'))
  return new Map(
    names.map((name) => [
      name,
      JSON.parse(readFileSync(`deploy/grafana/${name}`, 'utf8')) as Dashboard,
    ]),
  )
}

const dashboards = readDashboards()

test('deploy/grafana has dashboards whose panels have a description and a unit', () => {
  assert.deepEqual([...dashboards.keys()], ['node.json', 'overview.json'])
  const known = metricNames()
  for (const [file, { panels, templating }] of dashboards) {
    assert.equal(templating.list.find(({ type }) => type === 'datasource')?.name, 'datasource')
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, `${file}: ids`)
    for (const { type, title, description, datasource, fieldConfig, targets } of panels) {
      if (type === 'row') continue
      const place = `${file}: ${title}`
      assert.ok((description ?? '').length > 10, `${place} has a description`)
      assert.ok(fieldConfig?.defaults.unit !== undefined, `${place} has a unit`)
      assert.equal(datasource?.uid, '${datasource}', `${place} uses the chosen data source`)
      for (const { expr } of targets ?? [])
        for (const [name] of expr.matchAll(/\b(?:namegate|nodejs|process)_\w+/g))
          assert.ok(known.has(name), `${place}: ${name} is a metric`)
    }
  }
})

describe('Prometheus', { skip: NEEDS_PROMETHEUS }, () => {
  let folder: DaemonFolder
  let upstream: FakeUpstream
  let daemon: RunningDaemon
  let prometheus: Prometheus
  let metricsPort: number

  before(async () => {
    upstream = await FakeUpstream.start()
    metricsPort = await freePort()
    folder = new DaemonFolder({
      files: {
        'policy.yaml': policyText('web', ['a.example']),
        'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
      },
      config: {
        upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
        metrics: `{ address: 127.0.0.1, port: ${metricsPort} }`,
      },
    })
    daemon = await folder.serve()
    prometheus = await Prometheus.start(folder, metricsPort)
  })

  after(async () => {
    await Promise.all([prometheus.process.stop(), daemon.process.stop(), upstream.stop()])
    folder.remove()
  })

  test('deploy/prometheus passes the check of promtool', async () => {
    const { code, stdout, stderr } = await run(PROMTOOL, [
      'check',
      'config',
      resolve('deploy/prometheus/prometheus.yml'),
    ])
    assert.equal(code, 0, stdout + stderr)
    assert.match(stdout, /SUCCESS: \d+ rules found/)
  })

  test('deploy/prometheus lets Prometheus scrape a daemon', async () => {
    await untilTrue('scrape', async () => {
      return (await prometheus.query('up{job="namegate"}'))[0] === '1'
    })
    assert.deepEqual(await prometheus.query('namegate_policy_files{state="in-force"}'), ['1'])
    folder.write('metrics.txt', (await http({ port: metricsPort }, '/metrics')).text)
    const check = await run('sh', ['-c', `'${PROMTOOL}' check metrics <metrics.txt`], {
      cwd: folder.path,
    })
    assert.equal(check.code, 0, `promtool on the metrics: ${check.stdout}${check.stderr}`)
    assert.equal(check.stdout + check.stderr, '', 'no warning')
  })

  test('every expression of the dashboards returns data of a daemon that answers and denies', async () => {
    const client = await daemon.client()
    const waiting = new Set(expressions())
    try {
      await untilTrue('data of every expression', async () => {
        await client.ask('a.example')
        await client.ask('b.example')
        for (const expression of waiting) {
          if ((await prometheus.query(expression)).some(isNumber)) waiting.delete(expression)
        }
        return [...waiting].every((each) => EVENT_ONLY.some(([part]) => part.test(each)))
      })
    } catch (cause) {
      assert.fail(`without data: ${[...waiting].join('\n')}\n${String(cause)}`)
    } finally {
      client.close()
    }
    for (const [part, reason] of EVENT_ONLY)
      assert.ok(
        [...waiting].some((each) => part.test(each)),
        `${String(part)} has data: ${reason}`,
      )
  })
})

/** The expressions of all panels, with the variables of Grafana replaced. */
function expressions(): readonly string[] {
  const values: readonly (readonly [name: string, value: string])[] = [
    ['$__rate_interval', '1m'],
    ['=~"$instance"', '=~".+"'],
    ['="$instance"', '=~".+"'],
    ['$endpoint', '.+'],
    ['$server', '.+'],
  ]
  return [...dashboards.values()].flatMap(({ panels }) =>
    panels.flatMap(({ targets = [] }) =>
      targets.map(({ expr }) =>
        values.reduce((text, [name, value]) => text.replaceAll(name, value), expr),
      ),
    ),
  )
}

function isNumber(value: string): boolean {
  return !Number.isNaN(Number(value))
}
