// `namegate exec` and names with private addresses: closed, unless `--allow` names the address.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseExecLab, ExecLab, PRIVATE } from '../../support/labs/exec-lab.ts'

const skip = canUseExecLab() ?? false
const NAME = `${PRIVATE.name}:80/tcp`
const CURL = 'curl --silent --show-error --max-time 3'

const ROWS: readonly (readonly [
  options: readonly string[],
  url: string,
  opens: boolean,
  why: string,
])[] = [
  [['--allow', NAME], PRIVATE.name, false, 'a name opens no private address'],
  [
    ['--allow', NAME, '--allow', '10.66.9.0/24:443'],
    PRIVATE.name,
    false,
    'another range is allowed',
  ],
  [
    ['--allow', NAME, '--allow', `${PRIVATE.address4}:81/tcp`],
    PRIVATE.name,
    true,
    '--allow names the address, so the name opens its port',
  ],
  [['--allow', '10.66.0.0/21'], PRIVATE.address4, true, 'a prefix is allowed'],
  [['--allow', '10.66.0.0/21:80/udp'], PRIVATE.address4, false, 'another protocol is allowed'],
  [['--allow', `[${PRIVATE.address6}]:80`], `[${PRIVATE.address6}]`, true, 'an address is allowed'],
]

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(async () => {
    lab = await ExecLab.open()
  })

  after(async () => {
    await lab.close()
  })

  for (const [options, host, opens, why] of ROWS) {
    it(`${opens ? 'reaches' : 'does not reach'} ${host} with ${options.join(' ')}: ${why}`, async () => {
      const script = `${CURL} http://${host}/`
      const { code, stdout, stderr } = await lab.exec({
        who: 'root',
        args: [...options, '--', 'sh', '-c', script],
      })
      assert.equal(code === 0 && stdout.startsWith('hello'), opens, stderr)
      if (!opens && host === PRIVATE.name) {
        assert.match(
          stderr,
          /^10\.66\.7\.1:80\/tcp +refused +\d+ +guarded, .* --allow 10\.66\.7\.1:80\/tcp/m,
        )
      }
    })
  }
})
