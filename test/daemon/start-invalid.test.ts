// A start with invalid input: every fault of all files at once, as `file:line:col: message` on stderr, exit 2, and no listener or file is
// left.

import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import {
  DaemonFolder,
  NEEDS_ROOT,
  PROGRAM,
  type FolderOptions,
} from '../support/nodes/daemon-process.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import type { Output } from '../support/labs/lab-process.ts'

const GOOD = {
  'policy.yaml': policyText('web', ['a.example']),
  'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
}

const folders: DaemonFolder[] = []
after(() => folders.forEach((folder) => folder.remove()))

function mkDaemon(options: FolderOptions): DaemonFolder {
  const folder = new DaemonFolder({ ...options, files: { ...GOOD, ...options.files } })
  folders.push(folder)
  return folder
}

function places(output: Output): readonly string[] {
  const lines = output.stderr.trimEnd().split('\n')
  return lines.map((line) => /^[^: ]+:\d+:\d+(?=: \S)/.exec(line)?.[0] ?? line)
}

interface Row {
  readonly what: string
  readonly options: FolderOptions
  readonly places: readonly string[]
  readonly says?: RegExp
}

const ROWS: readonly Row[] = [
  {
    what: 'keys and values of the config, all at once',
    options: { config: { nope: '1', log: '{ level: loud }', learning: 'sideways' } },
    places: ['namegate.yaml:8:1', 'namegate.yaml:9:15', 'namegate.yaml:10:11'],
  },
  {
    what: 'all files of all kinds at once, with a missing path',
    options: {
      files: {
        'p/one.yaml': policyText('one', ['a.example']).replace('toFQDNs', 'toFQDN'),
        'p/two.yaml': policyText('two', ['a.example']).replace('matchName', 'matchNam'),
        'endpoints.yaml': 'endpoints:\n  - { name: me, addresses: [127.0.0.300] }\n',
        'resources.yaml': 'resources:\n  - { name: db, addresses: [] }\n',
      },
      config: {
        policies: '{ paths: [p, gone] }',
        resources: '{ files: [resources.yaml] }',
      },
    },
    places: [
      'endpoints.yaml:2:29',
      'namegate.yaml:3:24',
      'p/one.yaml:8:7',
      'p/two.yaml:7:59',
      'p/two.yaml:7:60',
      'resources.yaml:2:28',
    ],
    says: /^namegate\.yaml:3:24: found no file or folder gone, expected one/m,
  },
  {
    what: 'a policy in two files, and an endpoint in two files',
    options: {
      files: {
        'p/one.yaml': GOOD['policy.yaml'],
        'p/two.yaml': GOOD['policy.yaml'],
        'more.yaml': endpointsText({ other: '127.0.0.1' }),
      },
      config: { policies: '{ paths: [p] }', endpoints: '{ files: [endpoints.yaml, more.yaml] }' },
    },
    places: ['more.yaml:2:32', 'p/two.yaml:5:3'],
    says: /again, first at p\/one\.yaml:\d+$/m,
  },
  {
    what: 'more than a bound',
    options: {
      config: { limits: '{ endpoints: 1 }' },
      files: { 'endpoints.yaml': endpointsText({ a: '127.0.0.1', b: '127.0.0.2' }) },
    },
    places: ['endpoints.yaml:3:5'],
    says: /limits\.endpoints allows 1$/m,
  },
  {
    what: "upstreams that are namegate's own listeners",
    options: {
      config: {
        listeners:
          '[{ address: 127.0.0.1, port: 5310, mode: explicit }, { address: 0.0.0.0, port: 5311, mode: explicit }, { address: "::", port: 5312, mode: explicit }, { port: 5313, mode: explicit }]',
        upstreams:
          '{ servers: ["127.0.0.1:5310", "127.0.0.7:5311", "[::1]:5312", "127.0.0.1:5313", "127.0.0.7:5310"] }',
      },
    },
    places: ['2:24', '2:42', '2:60', '2:74'].map((place) => `namegate.yaml:${place}`),
    says: /127\.0\.0\.7:5311, our own listener of line 1/,
  },
]

describe('namegate run', { concurrency: 2 }, () => {
  for (const { what, options, places: expected, says } of ROWS) {
    test(`exits 2 and reports ${what}`, async () => {
      const folder = mkDaemon(options)
      const before = readdirSync(folder.path)
      const output = await folder.namegate('run')
      assert.equal(output.code, 2, output.stderr)
      assert.equal(output.stdout, '')
      if (expected.length > 0) assert.deepEqual([...places(output)].sort(), [...expected].sort())
      if (says !== undefined) assert.match(output.stderr, says)
      assert.equal(existsSync(folder.in('admin.sock')), false)
      assert.deepEqual(
        readdirSync(folder.path).filter((name) => name !== 'state'),
        before,
      )
    })
  }

  test('exits 2 when resolv.conf names its own listener', { skip: NEEDS_ROOT }, async () => {
    const folder = mkDaemon({
      files: { 'resolv.conf': 'nameserver 127.0.0.53\n' },
      config: {
        listeners: '[{ address: 127.0.0.53, port: 53, mode: explicit }]',
        upstreams: '{ servers: [system] }',
      },
    })
    const script = `mount --bind resolv.conf "$(readlink -f /etc/resolv.conf)" && exec ${PROGRAM} run --config namegate.yaml`
    const output = await folder.run('unshare', '--mount', 'sh', '-c', script)
    assert.deepEqual(
      [output.code, output.stderr],
      [
        2,
        "namegate.yaml:2:24: upstreams.servers: found 127.0.0.53:53 (named by resolv.conf), our own listener of line 1, expected a server that isn't namegate itself\n",
      ],
    )
  })
})
