// `policy suggest` prints a policy or an allow-list. Both forms allow the same: after either, nothing is left to suggest, and questions have
// the same answers.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { namegate, runCommand } from '../../support/nodes/command.ts'
import { FlowFolder, mkLine, suggest } from '../../support/nodes/flow-lines.ts'

type Form = readonly [
  why: string,
  lines: readonly Parameters<typeof mkLine>[0][],
  allowed: readonly string[],
  denied: readonly string[],
]
const NAME = 'api.example.com'
const FORMS: readonly Form[] = [
  [
    'a name without a recorded connection can be asked, because programs ask names to which they never connect',
    [{ name: NAME }],
    [`--ask ${NAME}`],
    [`--name ${NAME} --port 443/TCP`, '--ask other.example', '--address 192.0.2.1 --port 443/TCP'],
  ],
  [
    'a name with a connection can be asked, and reached at its port',
    [{ name: NAME }, { peer: '192.0.2.1', names: [NAME] }],
    [`--ask ${NAME}`, `--name ${NAME} --port 443/TCP`],
    [`--name ${NAME} --port 80/TCP`, `--name ${NAME} --port 443/UDP`],
  ],
  [
    'an address without a name can be reached at its port',
    [{ peer: '192.0.2.9', port: 9418 }],
    ['--address 192.0.2.9 --port 9418/TCP'],
    ['--address 192.0.2.8 --port 9418/TCP', '--address 192.0.2.9 --port 443/TCP'],
  ],
  [
    'an IPv6 address, which stands in brackets in a list',
    [{ peer: '2001:db8::9', protocol: 'UDP', labels: ['reserved:world', 'reserved:world-ipv6'] }],
    ['--address 2001:db8::9 --port 443/UDP'],
    ['--address 2001:db8::9 --port 443/TCP', '--address 2001:db8::8 --port 443/UDP'],
  ],
]

describe('policySuggestCommand', () => {
  let flows: FlowFolder
  before(() => {
    flows = new FlowFolder()
  })
  after(() => flows.remove())

  for (const [why, lines, allowed, denied] of FORMS) {
    it(`allows the same in both forms: ${why}`, async () => {
      const file = flows.put('form.jsonl', lines.map(mkLine))
      const list = await suggest('--flows', file, '--labels', 'app=shop', '--format', 'allow-list')
      const policy = await suggest('--flows', file, '--labels', 'app=shop')
      const files = [flows.put('form.allow', [list.out]), flows.put('form.yaml', [policy.out])]
      for (const each of files) {
        const again = await suggest('--flows', file, '--policies', each)
        assert.match(again.err, /nothing to suggest/, each)
        for (const question of [...allowed, ...denied]) {
          const args = ['--policies', each, '--labels', 'app=shop', ...question.split(' ')]
          const { code, out } = await runCommand(namegate('policy explain'), ...args)
          assert.equal(code, allowed.includes(question) ? 0 : 1, `${each} ${question}: ${out}`)
        }
      }
    })
  }
})
