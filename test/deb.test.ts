// The Debian package without its Node.js: the files that scripts/deb/ lays out, the maintainer scripts, and the control file. `npm run
// packages -- deb` builds the whole package and installs it on Debian.

import assert from 'node:assert/strict'
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { run } from './support/labs/lab-process.ts'

const BUILT = 'dist/src/cli/up/init-files.js'
const skip = existsSync(BUILT) ? false : `${BUILT} is not built`
const VERSION = '1.2.3'
const TARGET = 'linux-x64-glibc'
const LIB = 'usr/lib/namegate'
const DOC = 'usr/share/doc/namegate'

describe('the tree of the Debian package', { skip }, () => {
  const root = mkdtempSync(join(tmpdir(), 'namegate-deb-'))
  let npm: readonly string[] = []
  let made: readonly string[] = []

  before(async () => {
    const args = ['scripts/deb/tree.mjs', root, TARGET, VERSION, 'LICENSE']
    const env = { SOURCE_DATE_EPOCH: '0' }
    const { code, stdout, stderr } = await run(process.execPath, args, { env, limitMs: 120_000 })
    assert.equal(code, 0, stderr)
    npm = stdout.trim().split('\n')
    const all = readdirSync(root, { recursive: true, encoding: 'utf8' })
    made = all.filter((path) => !lstatSync(join(root, path)).isDirectory())
  })
  after(() => rmSync(root, { recursive: true }))

  function text(path: string): string {
    return readFileSync(join(root, path), 'utf8')
  }

  it('has each file of the npm package, except the library and files for other machines', () => {
    const lost = npm.filter((path) => ![LIB, DOC].some((top) => made.includes(`${top}/${path}`)))
    const expected = (path: string): boolean =>
      /^dist\/src\/|^LICENSE$|^docs\/install-npm\.md$/.test(path) ||
      (path.startsWith('prebuilds/linux-') && !path.startsWith(`prebuilds/${TARGET}/`))
    assert.deepEqual(lost, npm.filter(expected))
    assert.ok(npm.length - lost.length > 50, `${npm.length - lost.length} files`)
  })

  it('has no other files than the npm package, except those that Debian needs', () => {
    const listed = new Set(npm.flatMap((path) => [`${LIB}/${path}`, `${DOC}/${path}`]))
    const more = made.filter((path) => !listed.has(path)).toSorted()
    assert.deepEqual(
      more.filter((path) => !path.startsWith(`${LIB}/node_modules/`)),
      [
        'etc/namegate/endpoints.yaml',
        'etc/namegate/namegate.yaml',
        'etc/namegate/policies/README',
        'usr/bin/namegate',
        'usr/lib/systemd/system/namegate-early.service',
        'usr/lib/systemd/system/namegate.service',
        'usr/lib/systemd/system/namegate.service.d/take-over.conf',
        'usr/lib/systemd/system/namegate.service.d/tproxy.conf',
        'usr/lib/systemd/system/namegate.socket',
        'usr/lib/systemd/system/namegate.socket.d/tproxy.conf',
        'usr/share/bash-completion/completions/namegate',
        `${DOC}/changelog.gz`,
        `${DOC}/copyright`,
        'usr/share/fish/vendor_completions.d/namegate.fish',
        'usr/share/lintian/overrides/namegate',
        'usr/share/man/man1/namegate.1.gz',
        'usr/share/man/man5/namegate.yaml.5.gz',
        'usr/share/zsh/vendor-completions/_namegate',
      ].toSorted(),
    )
  })

  it('has units whose files are in the package', () => {
    const units = made.filter((path) => path.includes('/systemd/system/'))
    const paths = units.flatMap(
      (unit) => text(unit).match(/\/usr\/[\w./-]+|(?<=file:)\/[\w./-]+/g) ?? [],
    )
    assert.ok(paths.includes('/usr/bin/namegate') && paths.length > 5, paths.join(' '))
    const lost = paths.filter(
      (path) => !existsSync(join(root, path)) && path !== '/usr/bin/namegate',
    )
    assert.deepEqual(lost, [])
    assert.ok(existsSync(join(root, 'usr/bin/namegate')), 'the link leads to the program')
  })

  it('has a configuration that a daemon accepts, without servers of the build machine', async () => {
    const config = join(root, 'etc/namegate/namegate.yaml')
    const { code, stderr } = await run('bin/namegate', ['config', 'check', config], {
      limitMs: 60_000,
    })
    assert.equal(code, 0, stderr)
    assert.match(
      text('etc/namegate/namegate.yaml'),
      /`system` means those of \/etc\/resolv\.conf\.$/m,
    )
  })

  it('has its own version, and the licences of what it contains', () => {
    const { version } = JSON.parse(text(`${LIB}/package.json`)) as { version: string }
    assert.equal(version, VERSION)
    const copyright = text(`${DOC}/copyright`)
    for (const part of ['Apache-2.0', 'zod', 'pino', 'preact', 'uplot', 'Node.js']) {
      assert.ok(copyright.includes(part), part)
    }
  })
})

for (const script of [
  'scripts/deb.sh',
  ...['postinst', 'prerm', 'postrm'].map((name) => `scripts/deb/${name}`),
]) {
  it(`${script} is valid for dash, and ends at a failure`, async () => {
    const { code, stderr } = await run('sh', ['-n', script])
    assert.equal(code, 0, stderr)
    assert.match(readFileSync(script, 'utf8'), /^set -eu?$/m)
  })
}

it('the control file has the fields that dpkg needs, and the libraries that the program loads', () => {
  const control = readFileSync('scripts/deb/control', 'utf8')
  for (const field of [
    'Package',
    'Version',
    'Architecture',
    'Maintainer',
    'Installed-Size',
    'Description',
  ]) {
    assert.match(control, new RegExp(`^${field}: \\S`, 'm'))
  }
  assert.match(control, /^Depends: .*\blibc6\b.*\blibbpf1, iproute2, nftables$/m)
  assert.doesNotMatch(control, /^Depends: .*\bnodejs\b/m, 'Debian 12 has Node.js 18')
})
