// The maps that a layout inherits from the one before, in plain folders: a pin in bpffs can be linked like any file.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { LAYOUT_VERSION } from '../../../../src/datapath/ebpf/maps/layout.ts'
import { inheritLayout, layoutsIn } from '../../../../src/datapath/ebpf/maps/layouts.ts'

const OLDER = LAYOUT_VERSION - 1

function withPins(run: (path: string) => void): void {
  const path = mkdtempSync(join(tmpdir(), 'namegate-pins-'))
  try {
    for (const layout of [OLDER, LAYOUT_VERSION]) {
      mkdirSync(join(path, `v${layout}`, 'links'), { recursive: true })
    }
    for (const name of ['ng_mode', 'ng_conn', 'links/cgroup_1_to']) {
      writeFileSync(join(path, `v${OLDER}`, name), '')
    }
    run(path)
  } finally {
    rmSync(path, { recursive: true })
  }
}

function list(path: string, layout: number): readonly string[] {
  return readdirSync(join(path, `v${layout}`)).toSorted()
}

test('inheritLayout pins equal maps and links in both layouts, and leaves no stale map to the older one', () => {
  withPins((path) => {
    inheritLayout(path, { [OLDER]: ['ng_mode'] })
    assert.deepEqual(list(path, LAYOUT_VERSION), ['links', 'ng_mode'])
    assert.deepEqual(list(path, OLDER), ['links', 'ng_mode'])
    for (const name of ['ng_mode', 'links/cgroup_1_to']) {
      const [own, older] = [LAYOUT_VERSION, OLDER].map((layout) => {
        return statSync(join(path, `v${layout}`, name)).ino
      })
      assert.equal(own, older, name)
    }
    assert.deepEqual(layoutsIn(path).toSorted(), [
      join(path, `v${OLDER}`),
      join(path, `v${LAYOUT_VERSION}`),
    ])
  })
})

test('inheritLayout begins with empty maps where they differ, if the older version has run since', () => {
  withPins((path) => {
    const own = join(path, `v${LAYOUT_VERSION}`)
    inheritLayout(path, { [OLDER]: ['ng_mode'] })
    writeFileSync(join(own, 'ng_conn'), '')
    inheritLayout(path, { [OLDER]: ['ng_mode'] })
    assert.deepEqual(list(path, LAYOUT_VERSION), ['links', 'ng_conn', 'ng_mode'])
    writeFileSync(join(path, `v${OLDER}`, 'ng_conn'), '')
    inheritLayout(path, { [OLDER]: ['ng_mode'] })
    assert.deepEqual(list(path, LAYOUT_VERSION), ['links', 'ng_mode'])
    assert.deepEqual(list(path, OLDER), ['links', 'ng_mode'])
  })
})

test('inheritLayout changes nothing if this layout existed before, or the older one is unknown', () => {
  withPins((path) => {
    inheritLayout(path, { [OLDER - 1]: ['ng_mode'] })
    assert.deepEqual(list(path, LAYOUT_VERSION), ['links'])
    writeFileSync(join(path, `v${LAYOUT_VERSION}`, 'ng_mode'), '')
    inheritLayout(path, { [OLDER]: ['ng_mode', 'ng_conn'] })
    assert.deepEqual(list(path, LAYOUT_VERSION), ['links', 'ng_mode'])
    assert.deepEqual(list(path, OLDER), ['links', 'ng_conn', 'ng_mode'])
  })
})
