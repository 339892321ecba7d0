// Lays out the files of the Debian package below a folder. The list of files is that of the npm package (`npm pack`): programs go to
// /usr/lib/namegate, documents and examples to /usr/share/doc/namegate. Made here are the units, the completions, the man pages, the
// configuration, the copyright and the changelog.
//   node scripts/deb/tree.mjs FOLDER TARGET VERSION LICENCE-OF-NODE      prints the list

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { LIBRARIES } from '../../dist/src/admin/page/files.js'
import { initFiles } from '../../dist/src/cli/up/init-files.js'
import { copyright } from './copyright.mjs'
import { inDebian } from './layout.mjs'

const [, , root, target, version, nodeLicence] = process.argv
const PROGRAM = 'usr/lib/namegate'
const DOCUMENTS = 'usr/share/doc/namegate'
const SYSTEMD = 'usr/lib/systemd/system'
/** The drop-ins that fit the configuration of the package. */
const DROP_INS = [
  'namegate.service.d/tproxy.conf',
  'namegate.service.d/take-over.conf',
  'namegate.socket.d/tproxy.conf',
]
const SHELLS = {
  bash: 'usr/share/bash-completion/completions/namegate',
  zsh: 'usr/share/zsh/vendor-completions/_namegate',
  fish: 'usr/share/fish/vendor_completions.d/namegate.fish',
}
const MAN = { 'man1/namegate.1': [], 'man5/namegate.yaml.5': ['namegate.yaml'] }

function write(path, text) {
  mkdirSync(join(root, dirname(path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

function copy(from, to) {
  mkdirSync(join(root, dirname(to)), { recursive: true })
  cpSync(from, join(root, to))
}

/** What a command of namegate prints. */
function printed(...args) {
  return execFileSync('bin/namegate', args, { encoding: 'utf8' })
}

/** As gzip -9n. */
function writeCompressed(path, text) {
  write(path, execFileSync('gzip', ['-9n'], { input: text }))
}

function npmFiles() {
  const list = execFileSync(
    'npm',
    ['pack', '--dry-run', '--json', '--ignore-scripts', '--silent'],
    {
      encoding: 'utf8',
    },
  )
  return JSON.parse(list)[0].files.map(({ path }) => path)
}

function program(files) {
  for (const file of files) {
    const path = inDebian(file, target)
    if (path !== undefined) copy(file, path)
  }
  const about = JSON.parse(readFileSync('package.json', 'utf8'))
  write(`${PROGRAM}/package.json`, `${JSON.stringify({ ...about, version }, null, 2)}\n`)
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  symlinkSync('../lib/namegate/bin/namegate', join(root, 'usr/bin/namegate'))
}

/** The libraries of the web page: each file that it serves, and what Node.js needs to find it. */
function pageLibraries() {
  const { resolve } = createRequire(join(process.cwd(), 'package.json'))
  for (const [name, file] of Object.values(LIBRARIES)) {
    const main = resolve(name)
    const folder = main.slice(
      0,
      main.lastIndexOf(`/node_modules/${name}/`) + `/node_modules/${name}/`.length,
    )
    for (const each of [join(folder, 'package.json'), main, join(dirname(main), file)]) {
      copy(each, `${PROGRAM}/node_modules/${name}/${each.slice(folder.length)}`)
    }
  }
}

/** The units of deploy/systemd, with the paths of the package and without the comment about their installation. */
function units() {
  const files = readdirSync('deploy/systemd').filter((file) => /\.(?:service|socket)$/.test(file))
  for (const file of [...files, ...DROP_INS]) {
    const text = readFileSync(join('deploy/systemd', file), 'utf8')
      .replace(/^(?:#.*\n)+(?=\[Unit\])/, '')
      .replaceAll('/opt/namegate/bin/namegate', '/usr/bin/namegate')
      .replaceAll('file:/opt/namegate/', `file:/${DOCUMENTS}/`)
      .replace('RequiresMountsFor=/opt/namegate ', `RequiresMountsFor=/${PROGRAM} `)
    if (text.includes('/opt/')) throw new Error(`${file} has a path that the package does not have`)
    write(`${SYSTEMD}/${file}`, text)
  }
}

function configuration() {
  const files = initFiles({
    datapath: {
      value: 'ebpf',
      why: 'eBPF programs at the interface drop what policy does not allow',
    },
    resolvers: undefined,
    found: [],
  })
  for (const [name, text] of files) write(`etc/namegate/${name}`, text)
}

function shellsAndPages() {
  for (const [shell, path] of Object.entries(SHELLS)) write(path, printed('completion', shell))
  for (const [path, args] of Object.entries(MAN)) {
    writeCompressed(`usr/share/man/${path}.gz`, printed('help', '--man', ...args))
  }
}

function aboutThePackage() {
  const date = new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000)
    .toUTCString()
    .replace('GMT', '+0000')
  const [, maintainer] = /^Maintainer: (.*)$/m.exec(readFileSync('scripts/deb/control', 'utf8'))
  const change = 'See CHANGELOG.md in this folder.'
  writeCompressed(
    `${DOCUMENTS}/changelog.gz`,
    `namegate (${version}) unstable; urgency=medium\n\n  * ${change}\n\n -- ${maintainer}  ${date}\n`,
  )
  write(`${DOCUMENTS}/copyright`, copyright(readFileSync(nodeLicence, 'utf8')))
  copy('scripts/deb/lintian-overrides', 'usr/share/lintian/overrides/namegate')
}

const listed = npmFiles()
program(listed)
pageLibraries()
units()
configuration()
shellsAndPages()
aboutThePackage()
for (const file of listed) process.stdout.write(`${file}\n`)
