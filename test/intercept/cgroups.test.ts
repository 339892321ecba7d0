import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findCgroups } from '../../src/intercept/cgroups.ts'

const ROOT = '/sys/fs/cgroup'
/** A folder below ROOT, which stands for a cgroup. */
const [some] = readdirSync(ROOT, { withFileTypes: true }).filter((each) => each.isDirectory())
const skip = some === undefined ? `${ROOT} has no folder` : false

test(
  'findCgroups gives the path below /sys/fs/cgroup and the level in the whole tree',
  { skip },
  () => {
    const name = some?.name ?? ''
    const at = (root: string) =>
      findCgroups([`/${name}/`, `cgroup-that-is-missing`], { root, path: ROOT })
    assert.deepEqual(at('/'), [{ level: 1, paths: [name] }])
    assert.deepEqual(
      at('/a/b'),
      [{ level: 3, paths: [name] }],
      'the mount shows a part of the tree',
    )
    const above = findCgroups([`cgroup/${name}`, `cgroup//${name}`], { root: '/', path: '/sys/fs' })
    assert.deepEqual(above, [{ level: 2, paths: [name] }], 'the same cgroup counts once')
  },
)

test('findCgroups refuses a cgroup that no rule can name', (t) => {
  const path = mkdtempSync(join(tmpdir(), 'ng-cgroups-'))
  t.after(() => rmSync(path, { recursive: true }))
  mkdirSync(join(path, 'job'))
  const found = () => findCgroups(['job'], { root: '/', path })
  assert.throws(found, /cgroup job: no rule can name it: it is not below \/sys\/fs\/cgroup/)
  const root = () => findCgroups(['cgroup'], { root: '/', path: '/sys/fs' })
  assert.throws(root, /cgroup cgroup: no rule can name it: its name has odd characters/)
})

test('findCgroups finds nothing outside of the mount and at its root', () => {
  for (const cgroup of ['', '/', '..', 'a/../..']) {
    assert.deepEqual(findCgroups([cgroup], { root: '/', path: ROOT }), [], cgroup)
  }
})
