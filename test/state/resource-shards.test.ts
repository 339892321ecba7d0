import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ResourceShards } from '../../src/state/resource-shards.ts'
import { until } from '../support/peers/client.ts'
import { FakeClock } from '../support/fake-clock.ts'

const root = mkdtempSync(join(tmpdir(), 'namegate-shards-'))
after(() => rmSync(root, { recursive: true }))

const LINE = '{"name":"db"}'

/** Shards in a folder that cannot be made while `blocked` exists, a file of its name. */
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

test('ResourceShards reports what the disk refused, and writes it when the disk accepts it', async () => {
  const { folder, clock, refused, shards } = mkShards('later')
  writeFileSync(folder, 'in the way')
  await assert.rejects(shards.keep('db', LINE), /EEXIST|ENOTDIR/)
  assert.equal(shards.isFailing, true)
  rmSync(folder)
  clock.advance(5000)
  await until('the disk to take it', () => !shards.isFailing)
  assert.equal(refused.length, 1)
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards tries once more at its end', async () => {
  const { folder, shards } = mkShards('last')
  writeFileSync(folder, 'in the way')
  await assert.rejects(shards.keep('db', LINE))
  rmSync(folder)
  await shards.close()
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards names a skipped file until it has written the file again', async () => {
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

test('ResourceShards writes its files again when the file in the place of their folder is removed', async () => {
  const { folder, clock, refused, shards } = mkShards('replaced')
  await shards.keep('db', LINE)
  const [file = ''] = readdirSync(folder)
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'in the way')
  assert.deepEqual(shards.look(), [join(folder, file)])
  await until('the disk to refuse', () => shards.isFailing)
  assert.match(refused.join(), /EEXIST|ENOTDIR/)
  assert.deepEqual(shards.look(), [], 'reported once')
  rmSync(folder)
  clock.advance(5000)
  await until('the disk to take it', () => !shards.isFailing)
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards writes a file again when the folder in its place is removed', async () => {
  const { folder, clock, refused, shards } = mkShards('file-replaced')
  await shards.keep('db', LINE)
  const [file = ''] = readdirSync(folder)
  const path = join(folder, file)
  rmSync(path)
  mkdirSync(path)
  assert.deepEqual(shards.look(), [path])
  await until('the disk to refuse', () => shards.isFailing)
  assert.match(refused.join(), /EISDIR/)
  rmSync(path, { recursive: true })
  clock.advance(5000)
  await until('the disk to take it', () => !shards.isFailing)
  assert.deepEqual(read(folder), [{ name: 'db' }])
})

test('ResourceShards starts empty with a file in the place of its folder, and reports it until the file is removed', () => {
  const { folder, damaged, shards } = mkShards('no-folder')
  writeFileSync(folder, 'in the way')
  assert.deepEqual(shards.read(), [])
  assert.deepEqual(shards.damage, damaged)
  assert.match(damaged.join(), /no-folder: cannot read: ENOTDIR/)
  shards.look()
  assert.deepEqual(shards.damage, damaged, 'still in the way')
  rmSync(folder)
  shards.look()
  assert.deepEqual(shards.damage, [])
})
