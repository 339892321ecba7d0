// Rows of tests for the checks of `namegate doctor`. Each row has a host, which is a folder with files of /proc, /etc and /lib, and a
// configuration.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Check, Examined, Result } from '../../../src/cli/doctor/finding.ts'
import { Machine } from '../../../src/cli/doctor/machine.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { RunTool } from '../../../src/intercept/tools.ts'
import { VERSION } from '../../../src/version.ts'

export type Files = Readonly<Record<string, string | Buffer>>

export interface DoctorRow {
  readonly why: string
  readonly check: Check
  readonly files?: Files
  /** Text of the configuration. */
  readonly config?: string
  readonly status?: NonNullable<Examined['status']>
  readonly result: Result
  readonly found: RegExp
  readonly remedy?: RegExp
  /** The finding that has this result, for checks with several. Without it, all findings have this result. */
  readonly part?: string
}

export const noTool: RunTool = async () =>
  await Promise.resolve({ code: -1, stdout: '', stderr: 'not in this test' })

function mkRoot(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), 'namegate-doctor-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

export const kernel = (release: string): Files => ({ '/proc/sys/kernel/osrelease': `${release}\n` })
export const built = (...options: readonly string[]): Files => ({
  ...kernel('6.1.0'),
  '/proc/config.gz': gzipSync(options.map((each) => `CONFIG_${each}\n`).join('')),
})
export const caps = (hex: string): Files => ({ '/proc/self/status': `Name:\tx\nCapEff:\t${hex}\n` })
export const fileLimit = (limit: string, path = 'self'): Files => ({
  [`/proc/${path}/limits`]: `Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 ${limit}               files\nMax locked memory         8388608              ${limit}              bytes\n`,
})
export const tracked = (count: number, max: number): Files => ({
  '/proc/sys/net/netfilter/nf_conntrack_count': `${count}\n`,
  '/proc/sys/net/netfilter/nf_conntrack_max': `${max}\n`,
})
/** A UDP socket in the form of /proc/net/udp. */
export const socketAt = (hexAddress: string, hexPort: string): Files => ({
  '/proc/net/udp': `  sl  local_address rem_address   st\n  12: ${hexAddress}:${hexPort} 00000000:0000 07 00000000:00000000 00:00000000\n`,
})

export const EBPF = 'datapath: { kind: ebpf }'
export const NFTABLES = 'datapath: { kind: nftables }'
export const TPROXY = 'listeners: [{ port: 10053, mode: tproxy }]'
export const OWN_53 = 'listeners: [{ address: 127.0.0.1, port: 53 }]'
export const SERVING = {
  version: VERSION,
  pid: 7,
  ready: true,
  mode: 'enforce',
  listeners: ['127.0.0.1:53'],
}

/** Registers one test for each row. */
export function testRows(rows: readonly DoctorRow[]): void {
  for (const { why, check, result, ...row } of rows) {
    test(`${check.name} finds ${result}: ${why}`, async (t) => {
      const root = mkRoot(row.files ?? {})
      t.after(() => rmSync(root, { recursive: true }))
      const machine = new Machine(noTool, root)
      const config = parseConfig(row.config ?? '', 'namegate.yaml', (_, [first]) => first === 127)
      const all = await check({ machine, config, status: row.status })
      const findings = all.filter((each) => row.part === undefined || each.check === row.part)
      assert.ok(findings.length > 0)
      for (const finding of findings) {
        assert.equal(finding.result, result, JSON.stringify(finding))
        assert.match(finding.found, row.found)
        if (row.remedy === undefined) assert.equal(finding.remedy, undefined)
        else assert.match(finding.remedy ?? '', row.remedy)
      }
    })
  }
}
