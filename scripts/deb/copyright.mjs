// Writes the copyright file of the Debian package: the licence of namegate, of each npm package in it, and of Node.js, as they are.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const OWN = `namegate is licensed under the Apache License, Version 2.0. Copyright: the namegate contributors.
On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

The kernel programs (prebuilds/bpf) declare the licence GPL to the kernel, which then lets them use all its functions.

This package contains the software below, each under its own licence.
`

export function copyright(nodeLicence) {
  const texts = packages().map(({ name, version, licence, text }) =>
    section(`${name} ${version} (${licence})`, text),
  )
  return [
    OWN,
    ...texts,
    section('Node.js (usr/lib/namegate/bin/node) and what it contains', shortened(nodeLicence)),
  ].join('\n')
}

function section(title, text) {
  return `${'-'.repeat(72)}\n${title}\n${'-'.repeat(72)}\n\n${text.trim()}\n`
}

/** The npm packages that the bundles and the page have code of. */
function packages() {
  const { packages: all } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const folders = Object.keys(all).filter((path) => path !== '' && all[path].dev !== true)
  return folders.sort().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const file = readdirSync(folder).find((each) => /^(?:licen[cs]e|copying)/i.test(each))
    const text = file === undefined ? fromReadme(folder) : readFileSync(join(folder, file), 'utf8')
    return { name, version, licence: license, text: shortened(text ?? `Licence: ${license}`) }
  })
}

/** Debian has the text of the Apache License in a place of its own; what stands around it stays. */
function shortened(text) {
  const whole = / *Apache License\s+Version 2\.0, January 2004[^]*END OF TERMS AND CONDITIONS/g
  return text.replace(
    whole,
    'Apache License, Version 2.0: see /usr/share/common-licenses/Apache-2.0',
  )
}

/** Some packages have their licence only there. */
function fromReadme(folder) {
  const path = join(folder, 'README.md')
  return existsSync(path)
    ? /^#+ *licen[cs]e[^]*/im.exec(readFileSync(path, 'utf8'))?.[0]
    : undefined
}
