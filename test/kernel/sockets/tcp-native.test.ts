// The addon's TCP listeners on the real kernel. A pod connects to servers that do not exist, by nftables' tproxy on the node and by
// redirect in its own network namespace. The answers have the asked address as source. Each query carries the asked server and the
// interface on which it arrived.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { canUseLab, type Host } from '../../support/labs/lab.ts'
import { podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { nativeIsLacking } from '../../support/open-sockets.ts'
import { programArgs } from '../../support/labs/program.ts'

const skip = canUseLab() ?? nativeIsLacking()

const PORT = 10_053
/** The mark of the helper. */
const MARK = 0x4e47
const SERVERS = ['10.96.0.10', '198.51.100.7', 'fd00:96::10', '2001:db8:ff::7'] as const

const TPROXY_RULES = `
table inet test {
  chain in {
    type filter hook prerouting priority mangle
    tcp dport 53 meta nfproto ipv4 tproxy ip to :${PORT} meta mark set 1 accept
    tcp dport 53 meta nfproto ipv6 tproxy ip6 to :${PORT} meta mark set 1 accept
  }
}`
const REDIRECT_RULES = `
table inet test {
  chain out {
    type nat hook output priority -100
    tcp dport 53 redirect to :${PORT}
  }
}`

const MARK_RULES = `
table inet marks {
  counter marked { }
  counter others { }
  chain out {
    type filter hook output priority 0
    tcp dport 9999 meta mark ${MARK} counter name marked
    tcp dport 9999 meta mark != ${MARK} counter name others
  }
}`

interface Seen {
  readonly client: string
  readonly asked: string
  readonly port: number
  readonly interface: number
}

const HELPER = fileURLToPath(new URL('../../support/peers/tcp-listener.ts', import.meta.url))
const NODE = [process.execPath, ...programArgs(HELPER)]

async function startListener(host: Host, mode: string): Promise<LabProcess> {
  const listener = host.start('env', [...NODE, mode, String(PORT)])
  await listener.untilOutput(/^ready /m, 20_000)
  return listener
}

/** Asks one server over TCP. dig accepts an answer only from the asked address. */
async function ask(host: Host, server: string): Promise<string> {
  const { stdout } = await host.run('dig', ['+tcp', '+tries=1', '+time=5', `@${server}`, 'a.test'])
  return /status: (\w+)/.exec(stdout)?.[1] ?? stdout
}

/** The last query that arrived. */
function lastSeen(listener: LabProcess): Seen {
  const lines = listener.stdout.matchAll(/^(\S+) asks (\S+) (\d+) on (\d+)$/gm)
  const [, client = '', asked = '', port, index] = [...lines].at(-1) ?? []
  return { client, asked, port: Number(port), interface: Number(index) }
}

function indexOf(host: Host, name: string): number {
  return Number(/^(\d+):/.exec(host.ip('-o', 'link', 'show', 'dev', name))?.[1] ?? Number.NaN)
}

async function loadRules(host: Host, rules: string): Promise<void> {
  const { code, stderr } = await host.run('sh', ['-c', `printf '%s' "$1" | nft -f -`, 'sh', rules])
  assert.equal(code, 0, stderr)
}

describe('Streams', { skip }, () => {
  let lab: PodLab
  let tproxy: LabProcess
  let redirect: LabProcess
  const pods: Pod[] = []

  before(async () => {
    lab = podLab({ pods: 3 })
    pods.push(...lab.pods)
    await loadRules(lab.node, TPROXY_RULES)
    for (const family of ['-4', '-6']) {
      lab.node.ip(family, 'rule', 'add', 'fwmark', '1', 'lookup', '100')
      lab.node.ip(family, 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', '100')
    }
    const last = podAt(2)
    await loadRules(last.host, REDIRECT_RULES)
    ;[tproxy, redirect] = await Promise.all([
      startListener(lab.node, 'tproxy'),
      startListener(last.host, 'redirect'),
    ])
  })

  after(async () => {
    await lab.close()
  })

  function podAt(number: number): Pod {
    const pod = pods[number]
    assert.ok(pod !== undefined)
    return pod
  }

  it('Streams answers from the asked server in mode tproxy and knows the interface', async () => {
    for (const number of [0, 1]) {
      const pod = podAt(number)
      for (const server of SERVERS) {
        assert.equal(await ask(pod.host, server), 'REFUSED', server)
        const { client, ...where } = lastSeen(tproxy)
        assert.equal(client, server.includes(':') ? pod.address6 : pod.address4)
        const index = indexOf(lab.node, pod.interface)
        assert.deepEqual(where, { asked: server, port: 53, interface: index })
      }
    }
  })

  it('Streams answers from the asked server in mode redirect', async () => {
    const pod = podAt(2)
    const loopback = indexOf(pod.host, 'lo')
    for (const server of SERVERS) {
      assert.equal(await ask(pod.host, server), 'REFUSED', server)
      const { client, ...where } = lastSeen(redirect)
      assert.ok([pod.address4, pod.address6, '127.0.0.1', '::1'].includes(client), client)
      assert.deepEqual(where, { asked: server, port: 53, interface: loopback })
    }
  })

  it('Streams names the privilege that a mode needs', async () => {
    for (const mode of ['tproxy', 'redirect']) {
      const without = ['--bounding-set', '-net_admin,-net_raw', ...NODE, mode, String(PORT + 1)]
      const { code, stderr } = await podAt(0).host.run('setpriv', without)
      assert.notEqual(code, 0)
      assert.match(stderr, new RegExp(`no privilege for mode ${mode}: run as root or with CAP_NET`))
    }
  })

  it('Streams marks the connections that it begins, from the first packet', async () => {
    const { host } = podAt(0)
    await loadRules(host, MARK_RULES)
    const { stdout, stderr } = await host.run('env', [
      ...NODE,
      'connect',
      '9999',
      lab.pods[0]?.gateway4 ?? '',
    ])
    assert.match(stdout, /^closed true$/m, stderr)
    const { stdout: counted } = await host.run('nft', ['list', 'counters'])
    assert.match(counted, /counter marked \{\s*packets 1 /)
    assert.match(counted, /counter others \{\s*packets 0 /)
  })
})
