// Runs the commands of docs/resources.md, one after the other, beside a daemon with its file.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { http } from '../support/nodes/admin.ts'
import { objectIn } from '../support/nodes/command.ts'
import { endpointsText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM } from '../support/nodes/daemon-process.ts'

const PAGE = readFileSync('docs/resources.md', 'utf8')
const HAS_CURL = existsSync('/usr/bin/curl')

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: to-billing }
spec:
  endpointSelector: {}
  egress:
    - toEndpoints: [{ matchLabels: { app: billing-db } }]
      toPorts: [{ ports: [{ port: postgres, protocol: TCP }] }]
`

function blocks(language: string): readonly string[] {
  return PAGE.split('```')
    .filter((block) => block.startsWith(`${language}\n`))
    .map((block) => block.slice(language.length + 1))
}

test('The commands of docs/resources.md work as written', async () => {
  const [yaml = ''] = blocks('yaml')
  const folder = new DaemonFolder({
    files: {
      'policy.yaml': POLICY,
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
      'resources.yaml': yaml,
    },
    config: { resources: '{ files: [resources.yaml] }', admin: '{ socket: var/run/admin.sock }' },
  })
  try {
    const daemon = folder.spawn()
    await daemon.process.untilOutput(/namegate serves/, 60_000)
    const explain = async (address: string): Promise<unknown> => {
      const body = JSON.stringify({ endpoint: 'me', address, port: '5432/TCP' })
      const socketPath = folder.in('var/run/admin.sock')
      const { text } = await http({ socketPath }, '/v1/explain', { method: 'POST', body })
      return objectIn(text)['verdict']
    }
    assert.deepEqual(
      [await explain('192.0.2.10'), await explain('2001:db8:5::7'), await explain('198.51.100.7')],
      ['allow', 'allow', 'deny'],
    )
    const [commands = '', requests = ''] = blocks('sh')
    const [set = '', get = '', remove = ''] = commands.trim().split('\n')
    const ran = async (line: string): Promise<string> => {
      const text = line.replace(/^namegate/, `${PROGRAM}`) + ' --config namegate.yaml'
      const { code, stdout, stderr } = await folder.run('sh', '-c', text)
      assert.equal(code, 0, `${line}: ${stderr}`)
      return stdout
    }
    assert.match(await ran(set), /^vm-7: set, until /)
    assert.equal(await explain('198.51.100.7'), 'allow')
    assert.match(await ran(get), /\nbilling-db +file +- /)
    assert.match(await ran(remove), /^vm-7: removed; /)
    assert.equal(await explain('198.51.100.7'), 'deny')
    if (HAS_CURL) {
      const here = requests.replaceAll('/run/namegate/admin.sock', 'var/run/admin.sock')
      const [put = '', takeAway = ''] = here.replaceAll('\\\n', ' ').trim().split('\n')
      const answered = async (line: string): Promise<object> => {
        const { code, stdout, stderr } = await folder.run('sh', '-c', line)
        assert.equal(code, 0, stderr)
        return objectIn(stdout)
      }
      const [answer = '{}'] = blocks('json')
      assert.deepEqual(Object.keys(await answered(put)), Object.keys(objectIn(answer)))
      assert.equal(await explain('198.51.100.8'), 'allow')
      await answered(takeAway)
      assert.equal(await explain('198.51.100.8'), 'deny')
    }
    await daemon.process.stop()
  } finally {
    folder.remove()
  }
})
