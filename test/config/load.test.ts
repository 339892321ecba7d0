import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidInputError } from '../../src/core/errors.ts'
import { formatPrefix } from '../../src/core/ip.ts'
import { LIMITS, makeLimits } from '../../src/core/limits.ts'
import { configJsonSchema, defaultConfig, loadConfig, parseConfig } from '../../src/config/load.ts'
import { isLoopback } from '../../src/core/ip.ts'
import { listWords } from '../../src/documents/source-document.ts'
import { keysOf } from '../support/config-keys.ts'

test('parseConfig of an empty file gives the built-in defaults', () => {
  const { file, listeners, upstreams, policies, endpoints, ...rest } = defaultConfig()
  assert.equal(file, 'built-in')
  assert.deepEqual(
    listeners.map(({ address, port, mode }) => [address?.octets.slice(0, 4), port, mode]),
    [[Uint8Array.of(127, 0, 0, 1), 5300, 'explicit']],
  )
  assert.deepEqual(
    upstreams.servers.map(({ kind }) => kind),
    ['system'],
  )
  assert.deepEqual([upstreams.timeoutMs, upstreams.attempts], [4_000, 3])
  assert.deepEqual(
    policies.paths.map(({ path }) => path),
    ['policies'],
  )
  assert.ok(policies.watch)
  assert.deepEqual(
    endpoints.files.map(({ path }) => path),
    ['endpoints.yaml'],
  )
  assert.deepEqual(rest, {
    clusterName: 'default',
    defaultEgress: 'allow',
    learning: 'node',
    intercept: { onStart: false, onExit: 'closed', mark: 20_039, table: 20_039 },
    unknownClients: { waitMs: 2_000, onTimeout: 'refuse' },
    resources: { files: [] },
    audit: { node: false, endpoints: [] },
    datapath: { kind: 'memory', adoptExistingMs: 600_000, pinPath: '/sys/fs/bpf/namegate' },
    state: { directory: 'var/state', restoreGraceMs: 600_000 },
    sources: { maxAgeMs: 86_400_000, onMaxAge: 'keep' },
    flows: { keepMs: 604_800_000, maxOctets: 268_435_456, outputs: ['file'] },
    admin: { socket: 'var/run/admin.sock' },
    metrics: { address: '127.0.0.1', port: 9465 },
    dns: {
      denyResponse: 'refused',
      withoutRules: 'allow',
      hold: { limitMs: 100, onLimit: 'servfail' },
      onDegraded: 'release',
      cnameMatch: 'question',
      svcb: 'learn',
      guard: 'pass',
      minTtlMs: 0,
      maxTtlMs: 86_400_000,
      graceAfterTtlMs: 60_000,
      tcpIdleMs: 21_600_000,
      udpIdleMs: 180_000,
      protectedPrefixes: [],
      prewarm: false,
    },
    limits: makeLimits(),
    log: { level: 'info', format: 'pretty' },
  })
})

test('parseConfig reads every key', () => {
  const config = parseConfig(
    `
listeners: [{ port: 53 }, { address: "::1", port: 5301 }, { port: 10053, mode: tproxy, interfaces: ["lxc*"] }]
intercept: { on-start: true, on-exit: open, mark: 7, table: 8 }
upstreams:
  servers: ["9.9.9.9:53", "[2620:fe::fe]:5353", system]
  original-destination: true
  trusted: [10.96.0.0/12]
  untrusted: pass
  timeout: 2s
  attempts: 2
unknown-clients: { wait: 1s, then: allow-unmanaged }
learning: endpoint
policies: { paths: [a.yaml, b], watch: false }
endpoints: { files: [] }
default-egress: deny
audit: { node: true, endpoints: [{ matchLabels: { app: x, "k8s:tier": "1" } }] }
datapath: { kind: ebpf, ebpf: { pin-path: /sys/fs/bpf/x }, adopt-existing: 1m }
state: { directory: s }
admin: { socket: a.sock, page: { address: "[::]:8443", token-file: t, tls: { certificate: c, key: k }, write: true } }
metrics: { address: "::1", port: 0 }
dns:
  deny-response: nodata
  without-rules: deny
  hold: { limit: 1s, on-limit: drop }
  on-degraded: servfail
  min-ttl: 5s
  max-ttl: 1h
  grace-after-ttl: 5s
  protected-prefixes: [10.0.0.0/8, "fd00::/8"]
  prewarm: true
limits: { pairs: 5, tcp-idle-timeout: 1m, udp-message: 512 }
log: { level: debug, format: json }
`,
    'n.yaml',
    isLoopback,
  )
  assert.deepEqual(
    config.listeners.map(({ address, port, mode }) => [address?.family, port, mode]),
    [
      [undefined, 53, 'explicit'],
      [6, 5301, 'explicit'],
      [undefined, 10_053, 'tproxy'],
    ],
  )
  assert.deepEqual(config.listeners[2]?.interfaces, ['lxc*'])
  assert.deepEqual(config.intercept, { onStart: true, onExit: 'open', mark: 7, table: 8 })
  const { servers, trusted, ...upstreams } = config.upstreams
  assert.deepEqual(trusted.map(formatPrefix), ['10.96.0.0/12'])
  assert.deepEqual(upstreams, {
    originalDestination: true,
    untrusted: 'pass',
    timeoutMs: 2_000,
    attempts: 2,
  })
  assert.deepEqual(config.unknownClients, { waitMs: 1_000, onTimeout: 'allow-unmanaged' })
  assert.deepEqual([config.learning, config.dns.prewarm], ['endpoint', true])
  assert.deepEqual(
    servers.map((each) => (each.kind === 'system' ? 'system' : each.address.port)),
    [53, 5353, 'system'],
  )
  assert.deepEqual(config.audit.endpoints, [
    {
      matchLabels: new Map([
        ['app', 'x'],
        ['k8s:tier', '1'],
      ]),
    },
  ])
  assert.deepEqual(config.datapath, {
    kind: 'ebpf',
    pinPath: '/sys/fs/bpf/x',
    adoptExistingMs: 60_000,
    verifyMs: 60_000,
  })
  assert.deepEqual(config.admin, {
    socket: 'a.sock',
    page: {
      address: { family: 6, octets: new Uint8Array(16), port: 8443 },
      tokenFile: 't',
      tls: { certificate: 'c', key: 'k', clientCa: undefined },
      write: true,
    },
  })
  assert.deepEqual(config.metrics, { address: '::1', port: 0 })
  assert.deepEqual(config.dns.hold, { limitMs: 1_000, onLimit: 'drop' })
  assert.equal(config.dns.protectedPrefixes.length, 2)
  assert.deepEqual(
    config.limits,
    makeLimits({ pairs: 5, 'tcp-idle-timeout': 60_000, 'udp-message': 512 }),
  )
  assert.equal(config.defaultEgress, 'deny')
})

test('loadConfig reports a missing file', () => {
  assert.throws(
    () => loadConfig('no/such/file.yaml'),
    (error: unknown) => {
      assert.ok(error instanceof InvalidInputError)
      assert.match(error.message, /^no\/such\/file\.yaml:1:1: cannot read: ENOENT/)
      return true
    },
  )
})

test('loadConfig takes the example of the repository', () => {
  const config = loadConfig('config/namegate.yaml')
  assert.deepEqual([config.listeners[0]?.port, config.metrics.port], [5300, 9465])
})

test('parseConfig freezes its result', () => {
  const config = defaultConfig()
  for (const part of [config, config.dns.hold, config.limits, config.listeners, config.log]) {
    assert.ok(Object.isFrozen(part))
  }
})

test('configJsonSchema has every key of the contract with a doc line and a default', () => {
  const keys = keysOf(configJsonSchema())
  for (const { path, description, hasDefault } of keys) {
    assert.ok(description.endsWith('.'), `${path} has no doc line`)
    const isOptional =
      path === 'listeners[].address' || /matchExpressions\[\]|^admin\.page|^kubernetes$/.test(path)
    assert.ok(hasDefault || isOptional, `${path} has no default`)
  }
  for (const key of Object.keys(LIMITS)) {
    assert.ok(
      keys.some(({ path }) => path === `limits.${key}`),
      listWords([key]),
    )
  }
})
