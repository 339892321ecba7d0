// The texts that `namegate up` prints when the workload is protected.

import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { planInterface } from '../../../src/cli/up/plan-host.ts'
import { tryIt, welcome } from '../../../src/cli/up/texts.ts'
import { mkFolder } from '../../support/nodes/daemon-files.ts'
import { BEHIND } from '../../support/up-facts.ts'

const folder = mkFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

const BOX = ['ip netns exec box ', ''] as const
const CGROUP = ["sh -c 'echo $$ > /c/cgroup.procs; exec ", "'"] as const

const ROWS: readonly (readonly [
  why: string,
  inside: readonly [string, string] | undefined,
  targets: readonly string[],
  said: string | undefined,
])[] = [
  ['a name', BOX, ['a.test'], 'ip netns exec box curl -sSI https://a.test'],
  [
    'a cgroup, with the quote at the end',
    CGROUP,
    ['a.test'],
    "sh -c 'echo $$ > /c/cgroup.procs; exec curl -sSI https://a.test'",
  ],
  ['HTTPS alone', BOX, ['a.test:443/tcp'], 'ip netns exec box curl -sSI https://a.test'],
  ['HTTP alone', BOX, ['a.test:80'], 'ip netns exec box curl -sSI http://a.test'],
  [
    'the first name that curl can reach',
    BOX,
    ['*.b.test', '192.0.2.1', 'c.test:22/tcp', 'd.test:443/udp', 'a.test'],
    'ip netns exec box curl -sSI https://a.test',
  ],
  ['no name', BOX, ['*.b.test'], undefined],
  ['a workload in which no command can be started', undefined, ['a.test'], undefined],
]

for (const [why, inside, targets, said] of ROWS) {
  test(`tryIt prints a command: ${why}`, () => {
    assert.deepEqual(tryIt(inside, targets), said === undefined ? [] : [`  try it:      ${said}`])
  })
}

test('welcome takes the name from a list of the user, if --allow gives none', () => {
  const file = join(folder, 'own.allow')
  writeFileSync(file, '# mine\nc.test\n')
  const plan = planInterface(BEHIND)
  const options = {
    target: { kind: 'interface', value: 'box0' },
    allows: ['*.b.test'],
    policies: [join(folder, 'policy.yaml'), file],
    upstreams: [],
    addresses: [],
    isAudited: false,
    write: undefined,
    isForced: false,
  } as const
  const ready = {
    list: { file, isMade: false },
    socket: '/run/a.sock',
    seconds: 1,
    isBypassed: false,
  }
  const text = welcome({ ...plan, inside: BOX }, options, ready)
  assert.match(text, /^ {2}try it: +ip netns exec box curl -sSI https:\/\/c\.test$/m)
  assert.match(text, /^ {2}allow more: +add the line NAME to \S+own\.allow$/m)
  assert.match(text, /^namegate: box0 is protected /)
  const open = welcome({ ...plan, inside: BOX }, options, { ...ready, isBypassed: true })
  assert.match(open, /is not protected: .* datapath mode enforce --socket \/run\/a\.sock ends this/)
})
