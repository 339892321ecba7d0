// `namegate exec` and a connection that outlives the TTL and the grace of its name. The connection continues. After its end, new
// connections to the address are refused. As root, in real time.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { BRIEF, canUseExecLab, ExecLab } from '../../support/labs/exec-lab.ts'

const skip = canUseExecLab() ?? false
/** TTL and grace are a second each; the look at open connections follows within a few more. */
const SECONDS = 10

describe('namegate exec', { skip }, () => {
  let lab: ExecLab

  before(async () => {
    lab = await ExecLab.open()
  })

  after(async () => {
    await lab.close()
  })

  it('keeps an open connection whose name has expired', async () => {
    const script = [
      `exec 3<>/dev/tcp/${BRIEF.name}/80`,
      `sleep ${SECONDS}`,
      `printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3`,
      'timeout 5 head -n 1 <&3',
    ].join('; ')
    const args = ['--allow', `${BRIEF.name}:80/tcp`, '--grace', '1s', '--json', '--']
    const { stdout, stderr } = await lab.exec({
      who: 'root',
      args: [...args, 'bash', '-c', script],
    })
    assert.match(stdout, /^HTTP\/1\.[01] 200/, stderr)
    assert.match(stderr, /"refused":\[\]/)
  })
})
