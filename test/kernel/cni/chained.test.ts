// namegate-cni after plugins that make the interface as ptp, Calico and bridge do: the interface and addresses that the daemon receives,
// the output of ADD, and the state of the interface when no daemon runs.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { ENFORCED, FakeDaemon, json, type Reply } from '../../support/cni/fake-daemon.ts'
import { canRunPlugin, POD, refusalOf, runPlugin } from '../../support/cni/plugin.ts'
import { canUseLab, type Host } from '../../support/labs/lab.ts'
import type { Output } from '../../support/labs/lab-process.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const skip = canUseLab() ?? canRunPlugin() ?? false
const BRIDGE_GATEWAY = '10.30.0.1'
const CURL_REFUSED = 7
const CURL_TIMEOUT = 28
const IPS = '"ips":[{"interface":1,"address":"10.20.1.2/24"},{"address":"fd20:1::2/64"}]'
/** Octets that a program would change if it read this JSON and wrote it again. */
const ODD = '{ "cniVersion":"1.0.0", "x":1.0, "y":12345678901234567890, "x":"\\u00e9 é",\n'

function sandbox(host: Host): string {
  return `/run/netns/${host.namespace}`
}

void describe('namegate-cni behind another plugin', { skip }, () => {
  const daemon = new FakeDaemon()
  let routed: PodLab
  let bridged: Host
  before(async () => {
    routed = podLab()
    bridged = addBridgedPod(routed)
    await daemon.start()
  })
  after(async () => {
    await daemon.remove()
    await routed.close()
  })
  beforeEach(() => {
    daemon.requests.length = 0
    daemon.reply = ENFORCED
  })

  async function call(
    command: string,
    previous: string,
    more: { readonly keys?: object; readonly pod?: Host; readonly interface?: string } = {},
  ): Promise<Output> {
    const { keys = {}, pod = routed.pods[0]!.host } = more
    const own = JSON.stringify({
      name: 'net',
      type: 'namegate-cni',
      socket: daemon.socket,
      ...keys,
    })
    const network = `{"cniVersion":"1.0.0","prevResult":${previous},${own.slice(1)}`
    const env = { CNI_NETNS: sandbox(pod), CNI_IFNAME: more.interface ?? 'eth0' }
    return await runPlugin({ command, network, env }, routed.node)
  }

  for (const [interfaces, why] of [
    ['[{"name":"lxc1"},{"name":"eth0","sandbox":"/run/netns/x"}]', 'ptp lists both sides'],
    ['[{"name":"lxc1","sandbox":""}]', 'Calico lists the host side'],
    ['[{"name":"eth0","sandbox":"/run/netns/x"}]', 'a plugin lists the side of the pod'],
    ['[]', 'a plugin lists nothing'],
  ] as const) {
    it(`ADD finds the host side of a routed veth: ${why}`, async () => {
      const previous = `${ODD}"interfaces":${interfaces},${IPS}}`
      assert.deepEqual(await call('ADD', previous), { code: 0, stdout: previous, stderr: '' })
      const [{ body, ...request } = { body: '' }] = daemon.requests
      assert.deepEqual(request, {
        method: 'POST',
        path: '/v1/kubernetes/place',
        type: 'application/json',
      })
      assert.deepEqual(JSON.parse(body), {
        ...POD,
        interface: 'lxc1',
        addresses: ['10.20.1.2', 'fd20:1::2'],
      })
    })
  }

  it('ADD finds the port of a bridge, whatever else the result lists', async () => {
    const others = ['br0', 'lxc1', 'veth2', 'gone'].map((name) => `{"name":"${name}"}`)
    const previous = `${ODD}"interfaces":[${others.join(',')}],${IPS}}`
    const { code } = await call('ADD', previous, { pod: bridged })
    assert.equal(code, 0)
    assert.match(daemon.requests[0]!.body, /"interface":"veth2"/)
  })

  it('CHECK asks the daemon again and prints nothing', async () => {
    assert.deepEqual(await call('CHECK', `{${IPS}}`), { code: 0, stdout: '', stderr: '' })
    assert.deepEqual(
      daemon.requests.map(({ path }) => path),
      ['/v1/kubernetes/place'],
    )
  })

  for (const [name, prepare, code, text, why] of [
    ['lo', [], 100, /found kind ''/, 'an interface without a peer'],
    [
      'mac0',
      ['link add mac0 link eth0 type macvlan'],
      100,
      /'macvlan'/,
      'namegate cannot attach to the kind of the interface',
    ],
    [
      'own0',
      ['link add own0 type veth peer name own1'],
      100,
      /another network namespace/,
      'both ends of the veth are in the pod',
    ],
    ['eth9', [], 4, /eth9.*No such device/, 'no such interface'],
    ['0123456789abcdef', [], 4, /0123456789abcdef/, 'a name that no interface can have'],
  ] as const) {
    it(`ADD refuses a pod that cannot be judged: ${why}`, async () => {
      for (const line of prepare) routed.pods[0]!.host.ipBatch(line)
      const output = await call('ADD', `{${IPS}}`, {
        interface: name,
        keys: { 'on-failure': 'close' },
      })
      assert.equal(output.code, 1)
      assert.equal(refusalOf(output).code, code)
      assert.match(refusalOf(output).details, text)
      assert.equal(daemon.requests.length, 0)
    })
  }

  it('ADD refuses a veth whose other end is in a third network namespace', async () => {
    const third = routed.lab.addHost('third')
    bridged.ipBatch(`link add far0 type veth peer name far1 netns ${third.namespace}`)
    const output = await call('ADD', `{${IPS}}`, { pod: bridged, interface: 'far0' })
    assert.equal(refusalOf(output).code, 100, output.stdout)
  })

  const hang: Reply = () => undefined
  const slow = json(200, { enforced: true, text: 'x'.repeat(1 << 17) })
  for (const [reply, code, text, why] of [
    [
      json(503, { detail: 'the datapath is behind' }),
      11,
      /the datapath is behind/,
      'the policies are not in force yet',
    ],
    [json(503, {}), 11, /status 503 without a reason/, 'a refusal without a reason'],
    [
      json(500, { detail: 'a "quoted"\nfault' }),
      11,
      /a "quoted"\?fault/,
      'a reason that needs escapes',
    ],
    [json(200, { enforced: false }), 11, /without a reason/, 'an answer without a confirmation'],
    [json(200, {}), 11, /without a reason/, 'an empty answer'],
    [slow, 11, /without a reason/, 'an answer that is too long'],
    [hang, 11, /no answer within the time limit/, 'no answer'],
    [json(409, { detail: 'no cluster' }), 100, /no cluster/, 'a daemon without a cluster'],
    [json(400, { detail: 'body' }), 100, /body/, 'a daemon of another version'],
  ] as const) {
    it(`ADD refuses the pod with code ${code}: ${why}`, async () => {
      daemon.reply = reply
      const output = await call('ADD', `{${IPS}}`, { keys: { 'timeout-seconds': 1 } })
      assert.equal(output.code, 1)
      assert.equal(refusalOf(output).code, code)
      assert.match(refusalOf(output).details, text)
    })
  }

  it('CHECK fails without the daemon, and leaves the pod as it is', async () => {
    const keys = { socket: '/nowhere.sock', 'on-failure': 'close' }
    const output = await call('CHECK', `{${IPS}}`, { keys })
    assert.equal(refusalOf(output).code, 11)
    assert.equal(await reaches(routed.pods[0]!.host, '10.20.1.1'), true)
  })

  for (const [kind, podOf, gateway] of [
    ['a routed veth', () => routed.pods[0]!.host, '10.20.1.1'],
    ['a port of a bridge', () => bridged, BRIDGE_GATEWAY],
  ] as const) {
    it(`ADD with on-failure: close closes ${kind} without the daemon`, async () => {
      const pod = podOf()
      assert.equal(await reaches(pod, gateway), true)
      for (let i = 0; i < 2; i++) {
        const keys = { socket: '/nowhere.sock', 'on-failure': 'close' }
        const { code, stdout, stderr } = await call('ADD', `{${IPS}}`, { pod, keys })
        assert.deepEqual([code, stdout], [0, `{${IPS}}`])
        assert.match(stderr, /is closed until the daemon puts the policies of shop\/web-0 in force/)
        assert.equal(await reaches(pod, gateway), false)
      }
    })
  }

  it('ADD with on-failure: close refuses a fault that does not end by waiting', async () => {
    daemon.reply = json(409, { detail: 'no cluster' })
    const output = await call('ADD', `{${IPS}}`, { keys: { 'on-failure': 'close' } })
    assert.equal(refusalOf(output).code, 100)
  })
})

/** A pod at a bridge port. The node is its gateway. */
function addBridgedPod({ lab, node }: PodLab): Host {
  const pod = lab.addHost('bridged')
  node.ipBatch(
    'link add br0 type bridge forward_delay 0',
    `address add ${BRIDGE_GATEWAY}/24 dev br0`,
    'link set br0 up',
  )
  lab.link(
    { host: node, interface: 'veth2', addresses: [] },
    { host: pod, interface: 'eth0', addresses: ['10.30.0.2/24'] },
  )
  node.ip('link', 'set', 'veth2', 'master', 'br0')
  return pod
}

/** Returns true if the address refuses a connection, and false after a timeout. */
async function reaches(from: Host, to: string): Promise<boolean> {
  const { code } = await from.run('curl', ['-s', '-m', '1', `http://${to}:9/`])
  assert.ok(code === CURL_REFUSED || code === CURL_TIMEOUT, `curl ended with ${code}`)
  return code === CURL_REFUSED
}
