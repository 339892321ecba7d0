// Imported before the tests of `scripts/test.mjs --bail`: the first test that fails ends its process. A reporter would be too late: tests
// that never wait are reported when all of them are over.
import { afterEach } from 'node:test'

afterEach((context) => {
  if (context.passed || context.error === null) return
  const cause = context.error.cause ?? context.error
  console.error(`${context.name}: ${cause.stack ?? cause}`)
  process.exit(1)
})
