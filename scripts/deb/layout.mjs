// Says where the Debian package has a file of the npm package. There is one list of files, which is package.json's.

/** Left out, with the reason. */
const LEFT_OUT = [
  [/^dist\/src\//, 'the library and its types are for TypeScript programs, which npm installs'],
  [/^LICENSE$/, 'Debian has the text in /usr/share/common-licenses'],
  [/^docs\/install-npm\.md$/, 'is about the npm package'],
]
const PROGRAM = /^(?:bin|dist|page|prebuilds)\/|^package\.json$/

/** Returns the path without leading slash. Undefined: the package does not have the file. `target`: as of scripts/prebuild.sh. */
export function inDebian(file, target) {
  if (LEFT_OUT.some(([pattern]) => pattern.test(file))) return undefined
  const [, other] = /^prebuilds\/(linux-[^/]+)\//.exec(file) ?? []
  if (other !== undefined && other !== target) return undefined
  return `${PROGRAM.test(file) ? 'usr/lib/namegate' : 'usr/share/doc/namegate'}/${file}`
}
