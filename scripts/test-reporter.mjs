// A node:test reporter that writes one JSON line per event that scripts/test.mjs counts: results and diagnostics.
// A failure carries what a person needs to see and nothing that cannot be written as JSON.

function describeError(error) {
  if (error === undefined || error === null) return 'no error given'
  const cause = error.code === 'ERR_TEST_FAILURE' && error.cause !== undefined ? error.cause : error
  if (typeof cause !== 'object' || cause === null) return String(cause)
  const lines = String(cause.stack ?? cause.message ?? cause).split('\n')
  return lines.filter((line) => !/\(?node:internal|node_modules/.test(line)).join('\n')
}

export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === 'test:diagnostic') {
      yield `${JSON.stringify({ type: 'diagnostic', nesting: data.nesting, message: data.message })}\n`
    } else if (type === 'test:pass' || type === 'test:fail') {
      const { name, nesting, skip, todo, details } = data
      yield `${JSON.stringify({
        type: type === 'test:pass' ? 'pass' : 'fail',
        name,
        nesting,
        skip,
        todo,
        suite: details.type === 'suite',
        milliseconds: details.duration_ms,
        time: performance.now(),
        failureType: details.error?.failureType,
        error: type === 'test:fail' ? describeError(details.error) : undefined,
      })}\n`
    }
  }
}
