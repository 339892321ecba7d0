import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { nativeFile, packageRoot } from '../../src/native/native-files.ts'
import { errnoName, loadPosix } from '../../src/native/native.ts'

const skip = existsSync(nativeFile('posix.node')) ? false : 'the native part is not built'

test('errnoName names an errno with either sign, and an unknown one by its number', () => {
  assert.deepEqual([28, -28, 524].map(errnoName), ['ENOSPC', 'ENOSPC', 'E524'])
})

test('packageRoot finds the folder of package.json', () => {
  assert.ok(existsSync(join(packageRoot(), 'package.json')))
})

test('loadBpf without the built part names the packages to install', () => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-native-'))
  try {
    cpSync('src', join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const script = `
      const { loadBpf } = await import(${JSON.stringify(join(folder, 'src/native/native.ts'))})
      try { loadBpf() } catch (error) { console.log(error.name + ': ' + error.message) }`
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const said = execFileSync(process.execPath, args, { encoding: 'utf8' })
    assert.match(
      said,
      /^UnavailableError: Cannot load native part bpf: it is not built: .*clang libbpf-dev.*npm run build\n$/,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('native functions refuse arguments of the wrong kind', { skip }, () => {
  const posix: Record<string, unknown> = { ...loadPosix() }
  const { ifIndex, cgroupId } = posix
  assert.ok(typeof ifIndex === 'function' && typeof cgroupId === 'function')
  assert.throws(() => Reflect.apply(ifIndex, undefined, []), TypeError)
  assert.throws(() => Reflect.apply(ifIndex, undefined, [7]), TypeError)
  assert.throws(() => Reflect.apply(cgroupId, undefined, ['x'.repeat(5000)]), TypeError)
})

test(
  'ifIndex and ifType know the loopback, and say when there is no such interface',
  { skip },
  () => {
    const posix = loadPosix()
    assert.equal(posix.ifType('lo'), 772)
    assert.ok(posix.ifIndex('lo') > 0)
    assert.equal(errnoName(posix.ifIndex('no-such-if')), 'ENODEV')
    assert.equal(errnoName(posix.ifIndex('a-name-that-is-much-too-long')), 'ENODEV')
  },
)
