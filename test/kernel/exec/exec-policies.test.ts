// `namegate exec` with policies: --policy accepts what --suggest wrote, a smaller policy refuses and names what would allow it, and a
// policy for another endpoint runs nothing; published ports. As an ordinary user.

import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { BANK, canUseExecLab, ExecLab, SHOP } from '../../support/labs/exec-lab.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false
const CURL = 'curl --silent --show-error --max-time 8'

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(async () => {
    lab = await ExecLab.open()
  })

  after(async () => {
    await lab.close()
  })

  it('forwards connections to published ports', async () => {
    const server = `require('node:http').createServer((q, r) => r.end('inside')).listen(8000, '127.0.0.1', () => console.log('up'))`
    const options = ['--publish', '18080:8000', '--quiet']
    const node = ['node', '-e', server]
    const started = lab.start({ who: 'user', args: [...options, '--', ...node] })
    await shows(started, 'up')
    const { stdout } = await lab.caller.run('sh', ['-c', `${CURL} http://127.0.0.1:18080/`])
    assert.equal(stdout, 'inside')
    process.kill(started.pid, 'SIGTERM')
    assert.equal((await started.ended(20_000))?.code, 143)
  })

  it('--suggest writes a policy that --policy accepts, and a smaller policy names what it refuses', async () => {
    const file = join(lab.folder, 'suggested.yaml')
    writeFileSync(file, '')
    chmodSync(file, 0o666)
    const script = `${CURL} -4 http://${SHOP.name}/ && ${CURL} -6 http://${BANK.name}:8080/`
    const command = ['--', 'sh', '-c', script]
    const recorded = await lab.exec({
      who: 'user',
      args: ['--audit', '--suggest', file, ...command],
    })
    assert.equal(recorded.code, 0, recorded.stderr)
    const text = readFileSync(file, 'utf8')
    assert.match(
      text,
      /- matchName: www\.bank\.test\n\s+toPorts:\n\s+- ports:\n\s+- \{ port: '8080', protocol: TCP \}/,
    )
    const again = await lab.exec({ who: 'user', args: ['--json', '--policy', file, ...command] })
    assert.equal(again.code, 0, again.stderr)
    const summary: unknown = JSON.parse(again.stderr.trim().split('\n').at(-1) ?? '')
    assert.deepEqual(refusedIn(summary), [])
    const smaller = join(lab.folder, 'smaller.yaml')
    writeFileSync(smaller, text.replace(/^ +- matchName: www\.bank\.test\n/m, ''))
    assert.notEqual(readFileSync(smaller, 'utf8'), text)
    const refused = await lab.exec({ who: 'user', args: ['--policy', smaller, ...command] })
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /^www\.bank\.test +denied +\d+ +--allow www\.bank\.test$/m)
  })

  it('runs nothing when no policy selects the command', async () => {
    const file = join(lab.folder, 'other.yaml')
    writeFileSync(file, OTHER_POLICY)
    const { code, stdout, stderr } = await lab.exec({
      who: 'user',
      args: ['--policy', file, '--', 'echo', 'ran'],
    })
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, /other\.yaml:1:1: no policy here selects the command/)
  })
})

const OTHER_POLICY = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: other }
spec:
  endpointSelector: { matchLabels: { app: other } }
  egress: [{ toEntities: [world] }]
`

async function shows(started: LabProcess, text: string): Promise<void> {
  await started.until(() => (started.stdout.includes(text) ? true : undefined), text, 30_000)
}

function refusedIn(summary: unknown): unknown {
  return typeof summary === 'object' && summary !== null && 'refused' in summary
    ? summary.refused
    : undefined
}
