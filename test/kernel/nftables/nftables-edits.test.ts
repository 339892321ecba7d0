// An identity gets other ports while packets to it are sent. No packet is lost that is allowed before and after an edit. Other ports are
// another port set in a set of ranges, which the kernel switches later than the map that refers to it.
// NAMEGATE_EDITS=n makes n edits.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { UdpStream } from '../../support/peers/udp-stream.ts'
import { programArgs } from '../../support/labs/program.ts'

const skip = canUseLab() ?? nftablesMaker.unavailable ?? false
const HELPER = fileURLToPath(new URL('../../support/labs/port-edits.ts', import.meta.url))
const EDITS = Number(process.env['NAMEGATE_EDITS'] ?? 1000)
const RATE = 10_000
const [ADDRESS, ALLOWED, CLOSED] = ['198.18.40.1', 7001, 7009]

describe('edits of the ports of an identity', { skip, timeout: 280_000 }, () => {
  let lab: PodLab
  let editor: LabProcess
  before(async () => {
    lab = podLab()
    const words = ['lxc1', '10.20.1.2/32', ADDRESS, String(ALLOWED), String(EDITS)]
    editor = lab.node.start(process.execPath, programArgs(HELPER, ...words))
    await editor.untilOutput(/^ready$/m)
  })
  after(async () => await lab.close())

  it(`lose no allowed packet, ${EDITS} of them`, async (t) => {
    const from = lab.pods[0]?.host
    assert.ok(from !== undefined)
    const stream = await UdpStream.start({
      from,
      to: lab.internet,
      targets: [
        { address: ADDRESS, port: ALLOWED, isAllowed: true },
        { address: ADDRESS, port: CLOSED, isAllowed: false },
      ],
      rate: RATE,
      sockets: 32,
    })
    process.kill(editor.pid, 'SIGUSR2')
    await editor.untilOutput(/^edited$/m, 60_000)
    const { seconds, sent, lost, forbidden, passed } = await stream.stop()
    t.diagnostic(
      `${EDITS} edits in ${seconds.toFixed(1)} s: ${sent} sent, ${lost} lost; ${forbidden} forbidden, ${passed} passed`,
    )
    assert.deepEqual({ lost, passed }, { lost: 0, passed: 0 })
    assert.ok(sent > 0 && forbidden > 0, `${sent} sent, ${forbidden} forbidden`)
  })
})
