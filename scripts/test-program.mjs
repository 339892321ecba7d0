// Starts a TypeScript program from its module that scripts/test.mjs compiled; the program sees its own path and arguments.
//   NAMEGATE_TEST_MODULES=build/tests node scripts/test-program.mjs PROGRAM.ts [ARGUMENT ...]
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const folder = resolve(process.env.NAMEGATE_TEST_MODULES)
process.argv.splice(1, 1)
const module = relative(join(folder, '../..'), process.argv[1]).replace(/\.ts$/, '.js')
await import(pathToFileURL(join(folder, module)).href)
