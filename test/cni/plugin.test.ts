// namegate-cni without an interface: versions, refusals, the state of the daemon, and removal. test/kernel/cni/ tests ADD and CHECK.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { FakeDaemon, json, type Reply } from '../support/cni/fake-daemon.ts'
import {
  callPlugin,
  canRunPlugin,
  POD,
  POD_ARGS,
  refusalOf,
  runPlugin,
} from '../support/cni/plugin.ts'

const skip = canRunPlugin() ?? false
const NET = { cniVersion: '1.1.0', name: 'net', type: 'namegate-cni' }
const RESULT = { cniVersion: '1.1.0', ips: [{ address: '10.0.0.2/24' }] }
const SUPPORTED = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']

void describe('namegate-cni', { skip }, () => {
  const daemon = new FakeDaemon()
  before(async () => await daemon.start())
  after(async () => await daemon.remove())
  beforeEach(() => {
    daemon.requests.length = 0
    daemon.reply = json(200, {})
  })

  for (const [input, version, why] of [
    [{ cniVersion: '0.4.0' }, '0.4.0', 'the version of the runtime comes back'],
    [{ cniVersion: '9.9.9' }, '9.9.9', 'a newer runtime learns what is supported'],
    ['', '1.1.0', 'old runtimes give no input'],
    [{}, '1.1.0', 'an object without a version'],
  ] as const) {
    it(`VERSION lists the versions: ${why}`, () => {
      const { code, stdout } = callPlugin({ command: 'VERSION', network: input })
      assert.equal(code, 0)
      assert.deepEqual(JSON.parse(stdout), { cniVersion: version, supportedVersions: SUPPORTED })
    })
  }

  for (const version of SUPPORTED) {
    it(`ADD answers in version ${version}`, () => {
      const network = { ...NET, cniVersion: version, prevResult: RESULT }
      const refusal = refusalOf(callPlugin({ command: 'ADD', network }))
      assert.equal(refusal.cniVersion, version)
      assert.equal(refusal.code, 4)
    })
  }

  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  for (const [command, network, env, code, text, why] of [
    ['', NET, {}, 4, /CNI_COMMAND: found ''/, 'no command'],
    ['UPDATE', NET, {}, 4, /found 'UPDATE'/, 'a command of no version'],
    ['ADD', '', {}, 6, /octet 0: expected a value/, 'no input'],
    ['ADD', '{"cniVersion":"1.0.0"', {}, 6, /octet 21/, 'input that ends early'],
    ['ADD', '{} {}', {}, 6, /expected the end/, 'two values'],
    ['ADD', '[]', {}, 6, /an object/, 'no object'],
    ['ADD', `{"a":${deep(64)}}`, {}, 6, /at most 64 levels/, 'input that is nested too deeply'],
    ['GC', `{"a":${deep(63)}}`, {}, 1, /cniVersion/, 'the deepest input'],
    ['ADD', `"${'x'.repeat(1 << 20)}"`, {}, 6, /more than 1 MiB/, 'input that is too long'],
    ['DEL', '{', {}, 6, /octet 1/, 'a removal with unreadable input'],
    ['ADD', { name: 'net' }, {}, 1, /cniVersion: found ''/, 'no version'],
    ['ADD', { ...NET, cniVersion: '0.2.0' }, {}, 1, /found '0.2.0'/, 'a version without chains'],
    ['DEL', { ...NET, cniVersion: '2.0.0' }, {}, 1, /found '2.0.0'/, 'a version of the future'],
    ['ADD', { ...NET, cniVersion: 1 }, {}, 1, /found ''/, 'a version that is no text'],
    ['ADD', { ...NET, socket: 'x.sock' }, {}, 7, /absolute path/, 'a relative socket'],
    ['ADD', { ...NET, socket: `/${'x'.repeat(108)}` }, {}, 7, /107 octets/, 'a long socket'],
    ['ADD', { ...NET, socket: 1 }, {}, 7, /^socket/, 'a socket that is no text'],
    ['ADD', { ...NET, socket: '/a\0b' }, {}, 7, /^socket/, 'a socket with a zero octet'],
    ['ADD', { ...NET, 'on-failure': 'open' }, {}, 7, /"refuse" or "close"/, 'a third choice'],
    ['ADD', { ...NET, 'on-failure': true }, {}, 7, /on-failure/, 'a choice that is no text'],
    ['ADD', { ...NET, 'timeout-seconds': 0 }, {}, 7, /from 1 to 120/, 'no time'],
    ['ADD', { ...NET, 'timeout-seconds': 121 }, {}, 7, /from 1 to 120/, 'too much time'],
    ['ADD', { ...NET, 'timeout-seconds': 1.5 }, {}, 7, /whole number/, 'a part of a second'],
    ['ADD', { ...NET, 'timeout-seconds': '5' }, {}, 7, /whole number/, 'a time that is a text'],
    ['ADD', NET, { CNI_ARGS: '' }, 4, /K8S_POD_NAMESPACE/, 'no pod'],
    ['ADD', NET, { CNI_ARGS: 'XK8S_POD_NAMESPACE=a' }, 4, /K8S_POD_NAMESPACE/, 'another key'],
    ['ADD', NET, { CNI_ARGS: 'K8S_POD_NAMESPACE=' }, 4, /NAMESPACE is missing/, 'an empty name'],
    ['ADD', NET, { CNI_ARGS: 'K8S_POD_NAMESPACE=a"b' }, 4, /letters, digits/, 'a quote in a name'],
    [
      'ADD',
      NET,
      { CNI_ARGS: POD_ARGS.replace(/;K8S_POD_NAME=[^;]*/, '') },
      4,
      /K8S_POD_NAME is/,
      'no name',
    ],
    ['ADD', NET, {}, 7, /put it last in 'plugins'/, 'no plugin before this one'],
    ['CHECK', { ...NET, prevResult: null }, {}, 7, /behind the plugin/, 'an empty result'],
    ['ADD', { ...NET, prevResult: {} }, {}, 7, /addresses of the pod/, 'a result without address'],
    ['ADD', { ...NET, prevResult: { ips: {} } }, {}, 7, /prevResult.ips/, 'no list of addresses'],
    ['ADD', mkResult('10.0.0/24'), {}, 7, /found address '10.0.0'/, 'a bad address'],
    ['ADD', mkResult(''), {}, 7, /found address ''/, 'an empty address'],
    [
      'ADD',
      mkResult(...Array<string>(33).fill('10.0.0.1/8')),
      {},
      7,
      /at most 32/,
      'many addresses',
    ],
    ['ADD', mkResult('10.0.0.1/8'), {}, 4, /CNI_NETNS/, 'no network namespace'],
    [
      'ADD',
      mkResult('10.0.0.1/8'),
      { CNI_NETNS: '/nowhere', CNI_IFNAME: 'eth0' },
      3,
      /nowhere/,
      'a network namespace that is gone',
    ],
  ] as const) {
    it(`${command || 'a call without a command'} is refused with code ${code}: ${why}`, () => {
      const output = callPlugin({ command, network, env })
      assert.equal(output.code, 1, output.stderr)
      const refusal = refusalOf(output)
      assert.equal(refusal.code, code)
      assert.match(refusal.details, text)
    })
  }

  it('DEL tells the daemon which pod is removed', async () => {
    const network = { ...NET, socket: daemon.socket, prevResult: RESULT }
    assert.deepEqual(await runPlugin({ command: 'DEL', network }), {
      code: 0,
      stdout: '',
      stderr: '',
    })
    const [{ body, ...request } = { body: '' }] = daemon.requests
    assert.deepEqual(request, {
      method: 'POST',
      path: '/v1/kubernetes/displace',
      type: 'application/json',
    })
    assert.deepEqual(JSON.parse(body), POD)
  })

  it('DEL takes a pod without a UID from an old runtime', async () => {
    const env = { CNI_ARGS: POD_ARGS.replace(/;K8S_POD_UID.*/, '') }
    await runPlugin({ command: 'DEL', network: { ...NET, socket: daemon.socket }, env })
    assert.deepEqual(JSON.parse(daemon.requests[0]?.body ?? ''), { ...POD, uid: '' })
  })

  const hang: Reply = () => undefined
  for (const [reply, message, why] of [
    [
      json(503, { detail: 'not now' }),
      /shop\/web-0 is removed: .*: not now/,
      'a daemon that refuses',
    ],
    [json(409, {}), /status 409 without a reason/, 'a refusal without a reason'],
    [hang, /no answer within the time limit/, 'a daemon that hangs'],
    [
      (response: Parameters<Reply>[0]) => response.socket?.destroy(),
      /ended without an answer|reset/,
      'a daemon that ends',
    ],
    [
      (response: Parameters<Reply>[0]) => response.socket?.end('SSH-2.0\r\n\r\n'),
      /not HTTP/,
      'another service',
    ],
  ] as const) {
    it(`DEL succeeds and says why the daemon was not told: ${why}`, async () => {
      daemon.reply = reply
      const network = { ...NET, socket: daemon.socket, 'timeout-seconds': 1 }
      const { code, stdout, stderr } = await runPlugin({ command: 'DEL', network })
      assert.deepEqual([code, stdout], [0, ''])
      assert.match(stderr, message)
    })
  }

  for (const [network, env, message, why] of [
    [{ ...NET, socket: '/nowhere.sock' }, {}, /No such file/, 'no daemon'],
    [
      { ...NET, 'on-failure': 'never' },
      {},
      /on-failure/,
      'a configuration that is no longer valid',
    ],
    [NET, { CNI_ARGS: '' }, /does not name the pod/, 'no pod'],
  ] as const) {
    it(`DEL succeeds without the daemon: ${why}`, () => {
      const { code, stderr } = callPlugin({ command: 'DEL', network, env })
      assert.equal(code, 0)
      assert.match(stderr, message)
    })
  }

  it('STATUS succeeds while the daemon answers', async () => {
    const network = { ...NET, socket: daemon.socket }
    assert.equal((await runPlugin({ command: 'STATUS', network })).code, 0)
    assert.deepEqual(
      daemon.requests.map(({ method, path }) => [method, path]),
      [['GET', '/v1/status']],
    )
  })

  it('STATUS reads no more than 64 KiB of a long answer', async () => {
    daemon.reply = json(200, { text: 'x'.repeat(1 << 20) })
    const network = { ...NET, socket: daemon.socket }
    assert.equal((await runPlugin({ command: 'STATUS', network })).code, 0)
  })

  it('STATUS fails with code 50 without the daemon', () => {
    const output = callPlugin({ command: 'STATUS', network: { ...NET, socket: '/nowhere.sock' } })
    assert.equal(output.code, 1)
    assert.equal(refusalOf(output).code, 50)
  })

  it('STATUS with on-failure: close succeeds without the daemon, because ADD does', () => {
    const network = { ...NET, socket: '/nowhere.sock', 'on-failure': 'close' }
    const { code, stdout, stderr } = callPlugin({ command: 'STATUS', network })
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /nowhere\.sock/)
  })

  it('STATUS with on-failure: close fails when the daemon refuses for good', async () => {
    daemon.reply = json(404, { detail: 'no such path' })
    const network = { ...NET, socket: daemon.socket, 'on-failure': 'close' }
    assert.equal(refusalOf(await runPlugin({ command: 'STATUS', network })).code, 50)
  })

  it('GC has nothing to remove and needs no daemon', () => {
    const network = { ...NET, socket: '/nowhere.sock', 'cni.dev/valid-attachments': [] }
    assert.deepEqual(callPlugin({ command: 'GC', network }), { code: 0, stdout: '', stderr: '' })
  })
})

function mkResult(...addresses: readonly string[]): object {
  return { ...NET, prevResult: { ips: addresses.map((address) => ({ address })) } }
}
