// From the events of one test file to a flat list of tests. Only leaves count: a suite, or a test that merely holds
// subtests, is not a test of its own unless it failed by itself (a hook, an assertion after the subtests) or was
// skipped as a whole, which hides what it holds.

/** In the order of the table. */
export const KINDS = ['unit', 'property', 'contract', 'scenario', 'conformance', 'kernel']

const folders = {
  contract: 'contract',
  scenarios: 'scenario',
  conformance: 'conformance',
  kernel: 'kernel',
  property: 'property',
}

/** The kind that a file's folder or name gives; `unit` when neither says more. */
export function kindOfFile(file) {
  const folder = file.split('/')[1] ?? ''
  if (folder in folders) return folders[folder]
  return /property/.test(file) ? 'property' : 'unit'
}

function kindOf(file, name) {
  const kind = kindOfFile(file)
  return kind === 'unit' && /\bproperty\b/i.test(name) ? 'property' : kind
}

/** The name of a failure that belongs to no test of its file. */
export const WHOLE = '(the file as a whole)'

/** Before a file's name: the test that ends the file in a process that runs several (scripts/test-several.mjs). */
export const END = 'end of '

/**
 * The events of one process -> those of each file that it came to, and when the file's tests were done. A file without `time` had not
 * ended when the process did.
 */
export function partEvents(files, events) {
  if (files.length === 1) return [{ file: files[0], events }]
  const parts = []
  let own = []
  for (const event of events) {
    if (event.nesting === 0 && event.name === `${END}${files[parts.length]}`) {
      parts.push({ file: files[parts.length], events: own, time: event.time })
      own = []
    } else if (event.nesting > 0) {
      own.push({ ...event, nesting: event.nesting - 1 })
    } else if (event.type === 'diagnostic') {
      own.push(event)
    } else if (event.type === 'fail' && event.failureType !== 'subtestsFailed') {
      own.push({ ...event, name: WHOLE, suite: false })
    }
  }
  if (parts.length < files.length) parts.push({ file: files[parts.length], events: own })
  else if (own.length > 0) parts.at(-1).events.push(...own)
  return parts
}

/** `ended` says how the process died, when it did; without a failed test of its own that is one failure. */
export function readResults(file, events, ended) {
  const tests = []
  const notes = []
  /** Per nesting: the tests reported since the parent of that level began. */
  const open = []
  for (const event of events) {
    if (event.type === 'diagnostic') {
      if (!isRunnerSummary(event.message)) notes.push(event.message)
      continue
    }
    const children = open[event.nesting + 1] ?? []
    open[event.nesting + 1] = []
    for (const child of children) child.path.unshift(event.name)
    const test = toTest(event)
    const isWhole = event.suite ? test.outcome === 'skipped' : children.length === 0
    const failedItself = event.type === 'fail' && event.failureType !== 'subtestsFailed'
    const own = isWhole || failedItself ? [...children, test] : children
    open[event.nesting] = [...(open[event.nesting] ?? []), ...own]
  }
  for (const { path, ...test } of open[0] ?? []) {
    const name = path.join(' > ')
    tests.push({ file, name, kind: kindOf(file, name), ...test })
  }
  if (ended !== undefined && !tests.some((test) => test.outcome === 'failed')) {
    tests.push({
      file,
      name: WHOLE,
      kind: kindOfFile(file),
      outcome: 'failed',
      error: ended,
    })
  } else if (ended === undefined && tests.length === 0) {
    tests.push({
      file,
      name: WHOLE,
      kind: kindOfFile(file),
      outcome: 'failed',
      error: 'has no test',
    })
  }
  return { tests, notes }
}

function toTest(event) {
  const path = [event.name]
  if (event.skip !== undefined && event.skip !== false) {
    return {
      path,
      outcome: 'skipped',
      reason: event.skip === true || event.skip === '' ? 'no reason given' : event.skip,
    }
  }
  if (event.todo !== undefined && event.todo !== false)
    return { path, outcome: 'skipped', reason: 'to do' }
  const { milliseconds } = event
  return event.type === 'pass'
    ? { path, outcome: 'passed', milliseconds }
    : { path, outcome: 'failed', milliseconds, error: event.error ?? '' }
}

/** The counts that node:test itself adds at the end of a file. */
function isRunnerSummary(message) {
  return /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(message)
}
