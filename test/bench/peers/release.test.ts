// Tests the copy that the benchmarks start. Without a part that bin/namegate needs, the run would leave out namegate's turn.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { run } from '../../support/labs/lab-process.ts'
import { copyRelease } from './release.ts'

const ROOT = resolve('.')
const CONFIG = `listeners: [{ address: 127.0.0.1, port: 0, mode: explicit }]
upstreams: { servers: ["192.0.2.53:53"] }
datapath: { kind: memory }
policies: { paths: [] }
endpoints: { files: [] }
`
const skip = existsSync(join(ROOT, 'dist/main.bundle')) ? false : 'dist/ is not built'

test('copyRelease copies a namegate that starts without the sources', { skip }, async () => {
  const release = copyRelease(ROOT)
  const elsewhere = mkdtempSync(join(tmpdir(), 'namegate-released-'))
  try {
    const config = join(elsewhere, 'namegate.yaml')
    writeFileSync(config, CONFIG)
    assert.ok(!existsSync(join(release.folder, 'src')))
    const version = await run(release.command, ['--version'], { cwd: elsewhere })
    assert.deepEqual([version.code, version.stderr], [0, ''])
    assert.ok(release.title.startsWith(version.stdout.trim()), release.title)
    const checked = await run(release.command, ['config', 'check', config], { cwd: elsewhere })
    assert.deepEqual([checked.code, checked.stderr], [0, ''])
  } finally {
    rmSync(elsewhere, { recursive: true })
    rmSync(release.folder, { recursive: true })
  }
})
