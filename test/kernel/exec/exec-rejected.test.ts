// `namegate exec` answers the sender of a refused packet: TCP with a reset, UDP with an error. Without an answer, a program would wait and
// end with ETIMEDOUT. As root and as an ordinary user, over IPv4 and IPv6.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  canUseExecLab,
  ExecLab,
  SHOP,
  UNLEARNED_4,
  UNLEARNED_6,
} from '../../support/labs/exec-lab.ts'
import type { Output } from '../../support/labs/lab-process.ts'

const skip = canUseExecLab() ?? false

const ROWS: readonly (readonly [why: string, key: string, expected: RegExp])[] = [
  ['no name was learned for the address', `tcp ${UNLEARNED_4} 443`, /^ECONNREFUSED$/],
  ['the same over IPv6', `tcp ${UNLEARNED_6} 443`, /^ECONNREFUSED$/],
  ['the name is allowed at another port', `tcp ${SHOP.name} 8080`, /^ECONNREFUSED$/],
  // The kernel answers a datagram in two ways: the call fails, or an ICMP error arrives.
  ['a datagram', `udp ${UNLEARNED_4} 443`, /^(?:EPERM|EHOSTUNREACH)$/],
  ['a datagram over IPv6', `udp ${UNLEARNED_6} 443`, /^(?:EPERM|EACCES)$/],
  ['the name is allowed at this port', `tcp ${SHOP.name} 80`, /^connected$/],
]

describe('namegate exec', { skip }, () => {
  let lab: ExecLab
  const runs = new Map<string, Output>()

  before(async () => {
    lab = await ExecLab.open()
    const tries = ROWS.map(([, key]) => key).join()
    const args = ['--json', '--allow', `${SHOP.name}:80/tcp`, '--', 'node', '-e', TRY, tries]
    await Promise.all(
      (['root', 'user'] as const).map(async (who) => runs.set(who, await lab.exec({ who, args }))),
    )
  })

  after(async () => {
    await lab.close()
  })

  for (const who of ['root', 'user'] as const) {
    it(`as ${who}: answers the sender of a refused packet at once`, () => {
      const { stdout, stderr } = outputOf(who)
      const got = new Map(stdout.split('\n').map((line) => pair(line.split(': '))))
      for (const [why, key, expected] of ROWS) assert.match(got.get(key) ?? stderr, expected, why)
    })

    it(`as ${who}: reports its refusals`, () => {
      const { stderr } = outputOf(who)
      const summary: unknown = JSON.parse(stderr.trim().split('\n').at(-1) ?? '')
      const text = JSON.stringify(summary)
      for (const [address, port] of [
        [UNLEARNED_4, 443],
        [UNLEARNED_6, 443],
        [SHOP.address4, 8080],
      ])
        assert.match(
          text,
          new RegExp(
            `"address":"${address}","port":${port},"protocol":"TCP","packets":\\d+,"verdict":"refused"`,
          ),
        )
    })
  }

  function outputOf(who: string): Output {
    const output = runs.get(who)
    assert.ok(output !== undefined)
    return output
  }
})

function pair([key = '', value = '']: readonly string[]): readonly [string, string] {
  return [key, value]
}

/** Prints one line for each try: `PROTOCOL HOST PORT: CODE`. */
const TRY = `
const { connect, isIPv6 } = require('node:net')
const { createSocket } = require('node:dgram')
const say = (line) => console.log(line)
for (const key of process.argv[1].split(',')) {
  const [protocol, host, port] = key.split(' ')
  const told = (error) => say(key + ': ' + (error.code ?? error))
  if (protocol === 'tcp') {
    const socket = connect({ host, port: Number(port), autoSelectFamily: false, family: host.includes(':') ? 6 : 4 })
    socket.on('error', told).on('connect', () => { say(key + ': connected'); socket.destroy() })
  } else {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    let over = false
    const end = (error) => { if (!over) { over = true; told(error); socket.close() } }
    socket.on('error', end).connect(Number(port), host, () => socket.send('x', (error) => error && end(error)))
  }
}
`
