// Starts a TypeScript program that scripts/test.mjs compiled; the program sees its own path and arguments.
//   NAMEGATE_TEST_MODULES=build/tests node scripts/test-program.mjs PROGRAM.ts [ARGUMENT ...]
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const folder = resolve(process.env.NAMEGATE_TEST_MODULES)
process.argv.splice(1, 1)
const source = relative(join(folder, '../..'), process.argv[1])
const name = source.replace(/\.ts$/, '.js')
const module = [join(folder, 'peers', name), join(folder, name)].find((path) => existsSync(path))
if (module !== undefined) await import(pathToFileURL(module).href)
else (await import('./test-parts.mjs')).default(source)
