import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { findProject, foldersUp, PROJECT_FILE, watchProjects } from '../../src/sandbox/project.ts'

const top = mkdtempSync(join(tmpdir(), 'ng-project-'))
const uid = process.geteuid?.() ?? 0
const [repo, inner] = [join(top, 'repo'), join(top, 'repo', 'a', 'b')]

beforeEach(() => {
  rmSync(repo, { recursive: true, force: true })
  mkdirSync(inner, { recursive: true })
})

after(() => rmSync(top, { recursive: true }))

function put(folder: string, text: string, mode = 0o644): string {
  const file = join(folder, PROJECT_FILE)
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

const place = { folder: inner, home: '/nowhere', uid }

test('foldersUp ends at the top of the project', () => {
  const rows: readonly (readonly [why: string, git: string, home: string, expected: string])[] = [
    ['a repository', repo, '/nowhere', '/repo/a/b /repo/a /repo'],
    ['a repository inside another', inner, '/nowhere', '/repo/a/b'],
    ['no repository: the home folder', '', join(top, 'repo', 'a'), '/repo/a/b /repo/a'],
    ['a repository counts before the home folder', repo, inner, '/repo/a/b /repo/a /repo'],
    ['neither', '', '/nowhere', '/repo/a/b'],
  ]
  for (const [why, git, home, expected] of rows) {
    if (git !== '') mkdirSync(join(git, '.git'))
    const found = foldersUp(inner, home).map((each) => each.slice(top.length))
    assert.equal(found.join(' '), expected, why)
    if (git !== '') rmSync(join(git, '.git'), { recursive: true })
  }
})

test('findProject reads the nearest list', () => {
  mkdirSync(join(repo, '.git'))
  assert.deepEqual(findProject(place), { kind: 'none' })
  const outer = put(repo, '# packages\n\nregistry.example:443/tcp # https\n10.0.0.0/8\n')
  const found = findProject(place)
  assert.ok(found.kind === 'found')
  assert.equal(found.file, outer)
  assert.deepEqual(
    found.allows.map(({ target, port }) => [target.kind, port]),
    [
      ['name', 443],
      ['prefix', 0],
    ],
  )
  const nearer = put(inner, 'a.example\n')
  const next = findProject(place)
  assert.ok(next.kind === 'found')
  assert.equal(next.file, nearer)
})

test(
  'findProject refuses a list that others can have written',
  { skip: uid !== 0 && 'needs root' },
  () => {
    const rows: readonly (readonly [
      why: string,
      prepare: (file: string) => void,
      reason: RegExp,
    ])[] = [
      ['writable by all', (file) => chmodSync(file, 0o666), /others can write it: chmod go-w/],
      ['writable by the group', (file) => chmodSync(file, 0o664), /others can write it/],
      ['another owner', (file) => chownSync(file, 47_053, 0), /it belongs to user 47053/],
      [
        'a link',
        (file) => {
          rmSync(file)
          symlinkSync('/etc/hostname', file)
        },
        /symbolic link/,
      ],
      [
        'a folder',
        (file) => {
          rmSync(file)
          mkdirSync(file)
        },
        /not a regular file/,
      ],
      ['a long file', (file) => writeFileSync(file, '#'.repeat(1_100_000)), /longer than 1 MiB/],
    ]
    for (const [why, prepare, reason] of rows) {
      const file = put(inner, 'a.example\n')
      prepare(file)
      const found = findProject(place)
      assert.ok(found.kind === 'refused', why)
      assert.match(found.reason, reason, why)
      rmSync(file, { recursive: true })
    }
  },
)

test(
  'findProject accepts the list of root for another user',
  { skip: uid !== 0 && 'needs root' },
  () => {
    put(inner, 'a.example\n')
    assert.equal(findProject({ ...place, uid: 47_053 }).kind, 'found')
  },
)

test('findProject names the position of a fault', () => {
  const file = put(inner, 'a.example\n  b..example:80\n')
  assert.throws(() => findProject(place), {
    name: 'InvalidInputError',
    message: new RegExp(`^${file}:2:5: found an empty label`),
  })
})

test('watchProjects reports lists that appear or change', () => {
  mkdirSync(join(repo, '.git'))
  const first = put(repo, 'a.example\n')
  const changed = watchProjects(place)
  assert.deepEqual(changed(), [])
  const second = put(inner, '*\n')
  writeFileSync(first, 'longer.example\n')
  assert.deepEqual(changed(), [second, first])
})
