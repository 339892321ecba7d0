// `namegate exec` and connections that stay open, in real time. A connection continues through the first seconds of the sandbox, in which
// the kernel sets up IPv6, and when it outlives the TTL and the grace of its name.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { BRIEF, canUseExecLab, ExecLab, SHOP } from '../../support/labs/exec-lab.ts'

const skip = canUseExecLab() ?? false
/** TTL and grace are a second each; the look at open connections follows within a few more. */
const SECONDS = 10
/** The server sends ten lines a second. The kernel ends its checks of new IPv6 addresses within two seconds. */
const LINES = 40

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

  it('a download that begins with the command goes on, as root and as a user, over both families', async () => {
    const said: string[] = []
    const download = async (who: 'root' | 'user', family: 4 | 6) => {
      const curl = `curl -${family} -sN --max-time 20 http://${SHOP.name}/stream`
      const command = ['sh', '-c', `${curl} | sed ${LINES}q`]
      const args = ['--allow', `${SHOP.name}:80/tcp`, '--', ...command]
      const { stdout, stderr } = await lab.exec({ who, args })
      said.push(stderr)
      return `${who} IPv${family}: line ${stdout.trim().split('\n').at(-1)}`
    }
    assert.deepEqual(
      await Promise.all([
        download('root', 4),
        download('root', 6),
        download('user', 4),
        download('user', 6),
      ]),
      ['root IPv4', 'root IPv6', 'user IPv4', 'user IPv6'].map((run) => `${run}: line ${LINES}`),
      said.join('\n'),
    )
  })
})
