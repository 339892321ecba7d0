import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configJsonSchema, parseConfig } from '../../src/config/load.ts'
import { InvalidInputError } from '../../src/core/errors.ts'
import { keysOf } from '../support/config-keys.ts'

/** A value other than the default for every key, or word of a key, whose feature isn't built. */
const ROWS: readonly (readonly [text: string, message: string])[] = [
  ['datapath: { verify: 2m }', 'datapath.verify: "2m" ... 1m'],
  ['sources: { max-age: 1h }', 'sources.max-age: "1h" ... 24h'],
  ['sources: { then: deny }', 'sources.then: "deny" ... keep'],
]

for (const [text, message] of ROWS) {
  test(`parseConfig of ${text} says that it is not built`, () => {
    const expected = message.replace(' ... ', ' is not built yet; leave it at its default ')
    assert.throws(
      () => parseConfig(`${text}\n`, 'n', () => false),
      (error: unknown) => {
        assert.ok(error instanceof InvalidInputError)
        assert.deepEqual(
          error.faults.map((fault) => fault.message),
          [expected],
        )
        return true
      },
    )
  })
}

test('the table above has every key that the schema calls not built', () => {
  const later = keysOf(configJsonSchema()).filter(({ description }) =>
    description.includes('Not built yet'),
  )
  assert.ok(later.length > 0)
  const tested = ROWS.map(([, message]) => message.replaceAll('[0]', '[]').split(':')[0])
  assert.deepEqual(
    later.map(({ path }) => path).filter((path) => !tested.includes(path)),
    [],
  )
})

test('parseConfig takes the default of every key that is not built, written out', () => {
  const text = `
intercept: { on-start: false, on-exit: closed, mark: 0x4e47, table: 20039 }
upstreams: { original-destination: false, trusted: [], untrusted: refuse }
policies: { allow-list-endpoints: {}, ingress: error, unsupported-fields: error, cidr-matches-endpoints: false }
endpoints:
  identity-labels: ["!pod-template-hash", "!statefulset.kubernetes.io/pod-name", "!controller-revision-hash"]
resources: { files: [] }
unknown-clients: { wait: 2s, then: refuse }
audit: { node: false, endpoints: [] }
learning: node
datapath: { verify: 60s, adopt-existing: 10m }
state: { restore-grace: 10m }
sources: { max-age: 1d, then: keep }
flows: { keep: 168h, max-size: 256MiB }
dns: { tcp-idle: 6h, udp-idle: 3m, prewarm: false }
limits: { reply-sockets: 1024, resources: 200000 }
`
  const { file, ...config } = parseConfig(text, 'n', () => false)
  assert.equal(file, 'n')
  assert.equal(config.limits.resources, 200_000)
})
