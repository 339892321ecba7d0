import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundNames, boundSockets } from '../../src/sandbox/bound-sockets.ts'

const TABLE = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 21001 /run/agent.sock
0000000000000000: 00000002 00000000 00010000 0001 01 21002 @/abstract
0000000000000000: 00000003 00000000 00000000 0001 03 21003
0000000000000000: 00000002 00000000 00000000 0002 01 21004 /srv/with blanks/x.sock
0000000000000000: 00000002 00000000 00010000 0001 01 21005 var/run/admin.sock
`

test('boundNames gives the names in the file system, also relative ones and those with blanks', () => {
  const names = ['/run/agent.sock', '/srv/with blanks/x.sock', 'var/run/admin.sock']
  assert.deepEqual(boundNames(TABLE), names)
})

test('boundSockets finds sockets beside a name, and below the working folders of processes', () => {
  const found = boundSockets({
    table: TABLE,
    workingFolders: () => ['/opt/one', '/opt/two'],
    socketsIn: (folder) => [`${folder}/renamed.sock`],
  })
  assert.deepEqual([...found].sort(), [
    '/opt/one/var/run/renamed.sock',
    '/opt/two/var/run/renamed.sock',
    '/run/agent.sock',
    '/run/renamed.sock',
    '/srv/with blanks/renamed.sock',
    '/srv/with blanks/x.sock',
  ])
})

test('boundSockets reads the working folders of processes only for a relative name', () => {
  const found = boundSockets({
    table: TABLE.split('\n').slice(0, 2).join('\n'),
    workingFolders: () => assert.fail('not asked'),
    socketsIn: () => [],
  })
  assert.deepEqual([...found], ['/run/agent.sock'])
})
