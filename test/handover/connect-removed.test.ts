// The take-over socket is removed while the daemon runs. The daemon makes it again, and a successor can connect.

import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { connectPathOf } from '../../src/handover/connect.ts'
import { isBuilt } from '../../src/native/native.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM } from '../support/nodes/daemon-process.ts'
import { LabProcess } from '../support/labs/lab-process.ts'

const skip = isBuilt('posix') && isBuilt('udp') && isBuilt('tcp') ? false : 'no native part'

test(
  'namegate run makes its take-over socket again when another program removed it',
  { skip },
  async () => {
    const folder = new DaemonFolder({
      files: {
        'policy.yaml': policyText('web', ['*.example']),
        'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
      },
    })
    const first = await folder.serve()
    const args = ['run', '--config', 'namegate.yaml', '--take-over']
    let second: LabProcess | undefined
    try {
      const door = connectPathOf(folder.in('admin.sock'))
      await until('the way in is open', () => existsSync(door))
      rmSync(door)
      await first.process.untilOutput(/take-over socket was removed: made anew/)
      second = new LabProcess(PROGRAM, args, { cwd: folder.path })
      await second.untilOutput(/namegate serves/, 60_000)
      assert.equal((await first.process.ended(60_000))?.code, 0)
    } finally {
      await second?.stop()
      await first.process.stop()
      folder.remove()
    }
  },
)
