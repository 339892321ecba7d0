// `namegate cni` on folders of a node: the file that the runtime uses afterwards, its content, and a removal that leaves nothing.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { chainOf } from '../../../src/cli/cni/chain.ts'
import { findCommand } from '../../../src/cli/commands.ts'
import { InvalidInputError, messageOf } from '../../../src/core/errors.ts'
import { canRunPlugin, PLUGIN } from '../../support/cni/plugin.ts'

const OWN = '0-namegate.conflist'
const LIST = '{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp","mtu":1500}]}'
const root = mkdtempSync(join(tmpdir(), 'namegate-cni-install-'))
const conf = join(root, 'net.d')
const bin = join(root, 'bin')
after(() => rmSync(root, { recursive: true, force: true }))

/** Runs the command on both folders. Codes of thrown errors are those of the program. */
async function cni(verb: string, ...more: readonly string[]) {
  let stdout = ''
  const output = { stdout: (text: string) => void (stdout += text), stderr: () => undefined }
  const folders = ['--conf-dir', conf, '--bin-dir', bin]
  const { command, args } = findCommand(['cni', verb, ...folders, ...more])
  try {
    return { code: await command(args, output), text: stdout }
  } catch (error) {
    return { code: error instanceof InvalidInputError ? 2 : 3, text: messageOf(error) }
  }
}

function read(name: string): string {
  return readFileSync(join(conf, name), 'utf8')
}

function write(name: string, text: string): void {
  writeFileSync(join(conf, name), text)
}

describe('namegate cni', { skip: canRunPlugin() ?? false }, () => {
  beforeEach(() => {
    for (const folder of [conf, bin]) {
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder)
    }
  })

  test('install adds the plugin after the others, and uninstall leaves nothing', async () => {
    write('10-net.conflist', LIST)
    write('99-loopback.conf', '{"type":"loopback"}')
    write('README', 'no configuration')
    const installed = await cni('install', '--on-failure', 'close', '--socket', '/run/x.sock')
    assert.equal(installed.code, 0, installed.text)
    assert.equal(readdirSync(conf).sort()[0], OWN)
    assert.deepEqual(JSON.parse(read(OWN)), {
      cniVersion: '1.0.0',
      name: 'net',
      plugins: [
        { type: 'ptp', mtu: 1500 },
        { type: 'namegate-cni', socket: '/run/x.sock', 'on-failure': 'close' },
      ],
    })
    const program = join(bin, 'namegate-cni')
    assert.ok(readFileSync(program).equals(readFileSync(PLUGIN)))
    assert.equal(statSync(program).mode & 0o777, 0o755)
    assert.equal(read('10-net.conflist'), LIST)
    assert.equal((await cni('uninstall')).code, 0)
    assert.deepEqual(readdirSync(conf).sort(), ['10-net.conflist', '99-loopback.conf', 'README'])
    assert.deepEqual(readdirSync(bin), [])
    assert.deepEqual(await cni('uninstall'), { code: 0, text: '' })
  })

  test('install a second time writes nothing', async () => {
    write('10-net.conflist', LIST)
    await cni('install')
    const before = statSync(join(conf, OWN)).ino
    assert.deepEqual(await cni('install'), {
      code: 0,
      text: `installed: namegate-cni runs behind the plugins of ${conf}/10-net.conflist\n`,
    })
    assert.equal(statSync(join(conf, OWN)).ino, before)
  })

  test('install makes a list of a single plugin', async () => {
    write('10-net.conf', '{"cniVersion":"0.3.1","name":"net","type":"bridge","ipam":{}}')
    await cni('install', '--timeout-seconds', '30')
    assert.deepEqual(JSON.parse(read(OWN)), {
      cniVersion: '0.3.1',
      name: 'net',
      plugins: [
        { cniVersion: '0.3.1', name: 'net', type: 'bridge', ipam: {} },
        { type: 'namegate-cni', 'timeout-seconds': 30 },
      ],
    })
  })

  test('check finds a change of the network plugin, which install then takes over', async () => {
    write('10-net.conflist', LIST)
    assert.equal((await cni('check')).code, 1)
    await cni('install')
    assert.equal((await cni('check')).code, 0)
    write('10-net.conflist', LIST.replace('1500', '1400'))
    const found = await cni('check')
    assert.equal(found.code, 1)
    assert.match(
      found.text,
      /10-net\.conflist or an option has changed since: run \S*namegate cni install/,
    )
    assert.match(read(OWN), /1500/)
    await cni('install')
    assert.match(read(OWN), /1400/)
    assert.equal((await cni('check')).code, 0)
    assert.equal((await cni('check', '--on-failure', 'close')).code, 1)
    writeFileSync(join(bin, 'namegate-cni'), 'an older program')
    assert.match((await cni('check')).text, /of another version/)
  })

  test('uninstall removes what an interrupted install left', async () => {
    write(`${OWN}.new`, '{')
    writeFileSync(join(bin, 'namegate-cni.new'), '')
    assert.equal((await cni('uninstall')).code, 0)
    assert.deepEqual([...readdirSync(conf), ...readdirSync(bin)], [])
  })

  test('uninstall --keep-program leaves the program for pods that exist', async () => {
    write('10-net.conflist', LIST)
    await cni('install')
    await cni('uninstall', '--keep-program')
    assert.deepEqual(readdirSync(conf), ['10-net.conflist'])
    assert.ok(existsSync(join(bin, 'namegate-cni')))
  })

  for (const [name, text, code, message, why] of [
    ['x', LIST, 3, /no network configuration .*install the network plugin/, 'no file that counts'],
    [OWN, LIST, 3, /no network configuration/, 'only its own file'],
    ['-a.conf', LIST, 3, /would use .*-a\.conf before 0-namegate/, 'a name that comes first'],
    ['10.conflist', '{', 2, /10\.conflist: expected JSON/, 'no JSON'],
    ['10.conflist', '[]', 2, /expected an object/, 'no object'],
    ['10.conflist', '{"plugins":[]}', 2, /at least one plugin/, 'no plugin'],
    [
      '10.conflist',
      '{"type":"ptp"}',
      2,
      /plugins: expected a list/,
      'a plugin in a file for lists',
    ],
    [
      '10.conf',
      LIST,
      2,
      /plugins\[0\]: expected an object with a type/,
      'a list in a file for a plugin',
    ],
    ['10.json', '{"name":"net"}', 2, /plugins\[0\]/, 'a plugin without a type'],
    [
      '10.conflist',
      LIST.replace('1.0.0', '0.2.0'),
      2,
      /found "0\.2\.0", expected one of 0\.3\.0/,
      'a version without chains',
    ],
    [
      '10.conflist',
      LIST.replace('"cniVersion":"1.0.0",', ''),
      2,
      /cniVersion: found undefined/,
      'no version',
    ],
    ['10.conflist', LIST.replace('"net"', '""'), 2, /name: expected/, 'no name'],
    [
      '10.conflist',
      LIST.replace('ptp', 'namegate-cni'),
      2,
      /is there already/,
      'a chain made by hand',
    ],
  ] as const) {
    test(`install refuses and changes nothing: ${why}`, async () => {
      write(name, text)
      const refused = await cni('install')
      assert.equal(refused.code, code, refused.text)
      assert.match(refused.text, message)
      assert.deepEqual([readdirSync(conf), readdirSync(bin)], [[name], []])
    })
  }

  test('install names the folder that it cannot write', async () => {
    write('10-net.conflist', LIST)
    rmSync(bin, { recursive: true })
    const { code, text } = await cni('install')
    assert.equal(code, 3)
    assert.match(text, /Cannot write .*bin\/namegate-cni: ENOENT/)
    assert.deepEqual(readdirSync(conf), ['10-net.conflist'])
  })
})

test('chainOf keeps everything of the list but its plugins, and appends one plugin', () => {
  const plugin = fc.record({ type: fc.constantFrom('ptp', 'bridge'), more: fc.jsonValue() })
  const list = fc.record({
    cniVersion: fc.constantFrom('0.3.1', '1.1.0'),
    name: fc.string({ minLength: 1 }),
    plugins: fc.array(plugin, { minLength: 1 }),
    extra: fc.jsonValue(),
  })
  fc.assert(
    fc.property(list, (value) => {
      const text = JSON.stringify(value)
      const chain: unknown = JSON.parse(chainOf({ path: 'a.conflist', text }, {}))
      const { plugins, ...others } = JSON.parse(text) as { plugins: unknown[] }
      assert.deepEqual(chain, { ...others, plugins: [...plugins, { type: 'namegate-cni' }] })
    }),
  )
})
