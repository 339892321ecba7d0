import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { after, test } from 'node:test'
import { ResourceShards } from '../../src/state/resource-shards.ts'
import { FakeClock } from '../support/fake-clock.ts'

const root = mkdtempSync(join(tmpdir(), 'namegate-shards-'))
after(() => rmSync(root, { recursive: true }))

const LINE = '{"name":"db"}'

/** Shards in a folder that cannot be made while `blocked` is there: a file of its name. */
function mkShards(name: string) {
  const folder = join(root, name)
  const clock = new FakeClock()
  const [damaged, refused]: [string[], string[]] = [[], []]
  const shards = new ResourceShards({
    folder,
    clock,
    onDamage: (fault) => void damaged.push(fault),
    onFault: (reason) => void refused.push(reason),
  })
  return { folder, clock, damaged, refused, shards }
}

function read(folder: string): readonly unknown[] {
  const fail = (reason: string): never => assert.fail(reason)
  const clock = new FakeClock()
  return new ResourceShards({ folder, clock, onDamage: fail, onFault: fail }).read()
}

test('ResourceShards says what the disk refused, and writes it when the disk takes it', async () => {
  const { folder, clock, refused, shards } = mkShards('later')
  writeFileSync(folder, 'in the way')
  await assert.rejects(shards.keep('db', LINE), /EEXIST|ENOTDIR/)
  assert.equal(shards.isFailing, true)
  rmSync(folder)
  clock.advance(5000)
  for (let i = 0; i < 10_000 && shards.isFailing; i++) await nextTurn()
  assert.equal(shards.isFailing, false)
  assert.equal(refused.length, 1)
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards tries once more at the end', async () => {
  const { folder, shards } = mkShards('last')
  writeFileSync(folder, 'in the way')
  await assert.rejects(shards.keep('db', LINE))
  rmSync(folder)
  await shards.close()
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards names a file that it passed over until it has written it again', async () => {
  const { folder, damaged, shards } = mkShards('damaged')
  await shards.keep('db', LINE)
  const [file = ''] = readdirSync(folder)
  writeFileSync(join(folder, file), '{"version":9}')
  const next = new ResourceShards({
    folder,
    clock: new FakeClock(),
    onDamage: (fault) => void damaged.push(fault),
    onFault: (reason) => assert.fail(reason),
  })
  assert.deepEqual(next.read(), [])
  assert.deepEqual(next.damage, damaged)
  assert.match(damaged.join(), new RegExp(`${file}: found no resources`))
  await next.keep('db', LINE)
  assert.deepEqual(next.damage, [])
})
