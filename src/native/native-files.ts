// This file finds the files of the native part. In a checkout they are in `build/`, where scripts/build-native.sh puts them. An
// installed package has no `build/`: it has `prebuilds/`, with a folder for each target (scripts/prebuild.sh).

import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the addons below `build/`. The sanitizer build has a folder of its own. */
const ADDONS = process.env['NAMEGATE_ADDONS'] === 'Sanitize' ? 'Sanitize' : 'Release'
/** Octets of a program's start that contain the path of its loader. */
const HEAD = 4096

/** The folder of package.json. Works from `src/` and from `dist/src/`. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder)
    folder = dirname(folder)
  return folder
}

/** The path of an addon, of a program, or of a kernel object: `udp.node`, `sandbox`, `namegate.bpf.o`. */
export function nativeFile(name: string): string {
  const isKernelObject = name.endsWith('.bpf.o')
  if (isPrebuilt()) return join(prebuilds(), isKernelObject ? 'bpf' : target(), name)
  return join(packageRoot(), 'build', isKernelObject ? '' : ADDONS, name)
}

/**
 * Returns why a file of the native part is missing, and the remedy. `packages` are the commands that install what a build needs.
 */
export function whyMissing(packages: string): string {
  if (!isPrebuilt()) return `it is not built: ${packages}, then npm run build`
  const targets = readdirSync(prebuilds()).filter((name) => name.startsWith('linux-'))
  return `this package has no files for ${target()}, only for ${targets.sort().join(', ')}: build from a clone with npm run build`
}

/** True in an installed package, false in a checkout, which can have both folders. */
export function isPrebuilt(): boolean {
  return !existsSync(join(packageRoot(), 'build')) && existsSync(prebuilds())
}

function prebuilds(): string {
  return join(packageRoot(), 'prebuilds')
}

let known: string | undefined

/** The target of this process, such as `linux-x64-glibc`. */
function target(): string {
  known ??= `${process.platform}-${process.arch}-${usesMusl() ? 'musl' : 'glibc'}`
  return known
}

/** True if the loader of this Node.js is that of musl. process.report knows too, but takes milliseconds. */
function usesMusl(): boolean {
  const head = Buffer.alloc(HEAD)
  const fd = openSync(process.execPath, 'r')
  try {
    return head.subarray(0, readSync(fd, head, 0, HEAD, 0)).includes('/ld-musl-')
  } finally {
    closeSync(fd)
  }
}
