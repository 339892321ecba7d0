import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const ROOT = 'src/datapath'
const ADAPTERS: readonly string[] = ['memory', 'ebpf', 'nftables']

test('Datapath adapters import no other adapter', () => {
  const faults = ADAPTERS.flatMap((own) =>
    readdirSync(join(ROOT, own), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => importsOf(join(ROOT, own, path)))
      .filter((target) => ADAPTERS.some((other) => other !== own && isIn(target, other))),
  )
  assert.deepEqual(faults, [])
})

function importsOf(path: string): readonly string[] {
  const found = readFileSync(path, 'utf8').matchAll(/ from '(\.[^']*)'/g)
  return [...found].map(([, target = '']) => join(dirname(path), target))
}

function isIn(path: string, adapter: string): boolean {
  return path.startsWith(join(ROOT, adapter, '/'))
}
