// A real Prometheus from Debian that scrapes one daemon with the configuration in deploy/prometheus.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LabProcess } from '../labs/lab-process.ts'
import { http } from './admin.ts'
import type { DaemonFolder } from './daemon-process.ts'
import { freePort } from './free-port.ts'

const LIMIT_MS = 60_000
const PROMETHEUS = resolve('build/tools/prometheus')

/** The reason why a test that needs Prometheus is skipped, or false. */
export const NEEDS_PROMETHEUS = existsSync(PROMETHEUS)
  ? false
  : 'build/tools/prometheus is not there (npm test gets it)'

export class Prometheus {
  readonly process: LabProcess
  readonly #port: number

  private constructor(process: LabProcess, port: number) {
    this.process = process
    this.#port = port
  }

  /** Scrapes the daemon's metrics port every second. The folder holds the configuration and the data. */
  static async start(folder: DaemonFolder, metricsPort: number): Promise<Prometheus> {
    const port = await freePort()
    const text = readFileSync('deploy/prometheus/prometheus.yml', 'utf8')
    assert.ok(text.includes("'127.0.0.1:9465'") && text.includes('scrape_interval: 15s'))
    folder.write('prometheus.yml', text.replace('9465', `${metricsPort}`).replace('15s', '1s'))
    folder.write('alerts.yml', readFileSync('deploy/prometheus/alerts.yml', 'utf8'))
    const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data']
    const address = `--web.listen-address=127.0.0.1:${port}`
    const child = new LabProcess(PROMETHEUS, [...args, address], { cwd: folder.path })
    return new Prometheus(child, port)
  }

  /** Returns the values of all series of an expression. Throws the message of Prometheus if the expression is wrong. */
  async query(expression: string): Promise<readonly string[]> {
    const path = `/api/v1/query?query=${encodeURIComponent(expression)}`
    const { status, text } = await http({ port: this.#port }, path)
    assert.equal(status, 200, `${expression}: ${text}`)
    return [...text.matchAll(/"value":\[[\d.]+,"([^"]*)"\]/g)].map(([, value]) => value ?? '')
  }
}

/** Waits until `look` returns true; a failed look counts as false. */
export async function untilTrue(what: string, look: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; performance.now() < end; await sleep(200)) {
    if (await look().catch(() => false)) return
  }
  assert.fail(`no ${what} within ${LIMIT_MS} ms`)
}
