// A listener on port 0 on a host where TCP of another program, over IPv4 or IPv6, has nearly all ports. UDP and TCP of both families still
// get one number. The host draws from 16 ports, and 15 are taken.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Lab } from '../../support/labs/lab.ts'
import { startHelper } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const FIRST = 20_000
const PORTS = 16
const LEFT = 20_011
/** A start that draws only once finds the free port in one of 16 cases. Three starts in a row do in one of 4,096. */
const STARTS = 3

/** Takes ports over TCP, those of even numbers over IPv4 and the others over IPv6. */
const TAKER = `
const { createServer } = require('node:net')
let open = 0
const ports = Array.from({ length: ${PORTS} }, (_, i) => ${FIRST} + i).filter((port) => port !== ${LEFT})
for (const port of ports) {
  const host = port % 2 === 0 ? '0.0.0.0' : '::'
  createServer().listen({ host, port, ipv6Only: true }, () => {
    if (++open === ports.length) console.log('ready')
  })
}`

const skip = canUseNamegate() ?? false

it(
  'Listeners on port 0 end on one number for UDP and TCP of both families',
  { skip },
  async (t) => {
    const lab = new Lab()
    const node = lab.addHost('node')
    const namegate = new Namegate(
      { node, pods: [] },
      {
        policies: {},
        endpoints: [],
        listenerItems: ['{ port: 0 }'],
        datapath: '{ kind: memory }',
        upstream: '127.0.0.9:53',
      },
    )
    t.after(async () => {
      await namegate.close()
      await lab.close()
    })
    await startHelper(node, 'nameserver.ts', ['127.0.0.9', '53', '{"names":{}}'])
    node.sysctl(`net.ipv4.ip_local_port_range=${FIRST} ${FIRST + PORTS - 1}`)
    await node.start(process.execPath, ['-e', TAKER]).untilOutput(/^ready$/m)
    for (let i = 0; i < STARTS; i++) {
      await namegate.start({ attached: [] })
      const { listeners } = await namegate.status()
      assert.deepEqual(listeners, [`0.0.0.0:${LEFT}`, `[::]:${LEFT}`])
      // Ports that were drawn in vain are closed.
      const { stdout } = await node.run('ss', ['-Hlnu'])
      const lines = stdout.trim().split('\n')
      const bound = new Set(lines.map((line) => line.trim().split(/\s+/)[3]))
      assert.deepEqual(bound, new Set([`0.0.0.0:${LEFT}`, '127.0.0.9:53', `[::]:${LEFT}`]))
      await namegate.stop()
    }
  },
)
