// A token that only the service can read. The daemon finds it in the folder of its supervisor, serves the page for it, and does not start
// without it. Other commands need no token.

import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { http } from '../support/nodes/admin.ts'
import { DaemonFolder, PROGRAM } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { run } from '../support/labs/lab-process.ts'

const TOKEN = '0123456789abcdef0123456789abcdef'
const CONFIG = ['--config', 'namegate.yaml']
const MISSING =
  /^namegate(?:: |\.yaml:)[^]*7:\d+: admin\.page\.token-file: found credential:page-token, but /m

describe('namegate with a credential', () => {
  let folder: DaemonFolder
  let port = 0
  before(async () => {
    port = await freePort()
    folder = new DaemonFolder({
      files: {
        'policy.yaml': policyText('web', ['*.example']),
        'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
        'credentials/page-token': `${TOKEN}\n`,
        'empty/other': '',
      },
      config: {
        admin: `{ socket: admin.sock, page: { address: "127.0.0.1:${port}", token-file: "credential:page-token" } }`,
      },
    })
    chmodSync(folder.in('credentials/page-token'), 0o400)
  })
  after(() => folder.remove())

  test('run serves the page for the token of the credential', async () => {
    const daemon = await folder.serve({ CREDENTIALS_DIRECTORY: folder.in('credentials') })
    try {
      const status = async (token: string): Promise<number> => {
        const headers = { authorization: `Bearer ${token}` }
        return (await http({ port }, '/', { headers })).status
      }
      assert.deepEqual([await status(TOKEN), await status(`${TOKEN}0`)], [200, 401])
      assert.equal((await folder.namegate('status')).code, 0)
    } finally {
      await daemon.process.stop()
    }
  })

  const rows: readonly (readonly [
    command: readonly string[],
    credentials: string | undefined,
    code: number,
    reason: RegExp | undefined,
  ])[] = [
    [['run'], undefined, 2, /is not set: expected LoadCredential=/],
    [['config', 'check'], 'empty', 2, /has no page-token/],
    [['config', 'check'], undefined, 0, undefined],
  ]
  for (const [command, credentials, code, reason] of rows) {
    const where = credentials === undefined ? 'outside of a service' : 'without the file'
    test(`${command.join(' ')} ends with ${code} ${where}`, async () => {
      const env = credentials === undefined ? {} : { CREDENTIALS_DIRECTORY: folder.in(credentials) }
      const options = { cwd: folder.path, env, limitMs: 60_000 }
      const ended = await run(PROGRAM, [...command, ...CONFIG], options)
      const said = ended.stdout + ended.stderr
      assert.equal(ended.code, code, said)
      if (reason === undefined) return
      assert.match(said, MISSING)
      assert.match(said, reason)
    })
  }
})
