import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AuditControl,
  NO_AUDIT_SETTINGS,
  type AuditSettings,
} from '../../src/enforcement/audit-control.ts'

interface Given {
  readonly settings?: Partial<AuditSettings>
  readonly selectors?: readonly Readonly<Record<string, string>>[]
}

function mkAudit({ settings, selectors = [] }: Given, saved: AuditSettings[] = []): AuditControl {
  return new AuditControl({
    node: false,
    selectors: selectors.map((labels) => ({ matchLabels: new Map(Object.entries(labels)) })),
    settings: { ...NO_AUDIT_SETTINGS, ...settings },
    save: (each) => void saved.push(each),
  })
}

function mkEndpoint(name: string, audit = false) {
  return { name, labels: ['external:app=shop'], audit }
}

function nodeOf(audit: AuditControl): boolean {
  const { on, origin } = audit.node
  assert.equal(origin, on ? 'run time' : undefined)
  return on
}

const SHOP = { matchLabels: { app: 'shop' } }

const ROWS: readonly (readonly [
  why: string,
  given: Given,
  file: boolean,
  on: boolean,
  origin: string | undefined,
])[] = [
  ['no setting', {}, false, false, undefined],
  ['its file audits it', {}, true, true, 'endpoints file'],
  ['a selector of the config matches', { selectors: [{ app: 'shop' }] }, false, true, 'config'],
  ['one that does not match', { selectors: [{ app: 'other' }] }, false, false, undefined],
  [
    'run time wins over its file',
    { settings: { endpoints: { e: false } } },
    true,
    false,
    'run time',
  ],
  [
    'a run-time setting audits it',
    { settings: { endpoints: { e: true } } },
    false,
    true,
    'run time',
  ],
  [
    'a selector of run time',
    { settings: { selectors: [{ ...SHOP, on: true }] } },
    false,
    true,
    'run time, by selector',
  ],
  [
    'the last selector that matches decides',
    {
      settings: {
        selectors: [
          { ...SHOP, on: true },
          { matchLabels: {}, on: false },
        ],
      },
    },
    true,
    false,
    'run time, by selector',
  ],
  [
    'its name wins over a selector',
    { settings: { endpoints: { e: true }, selectors: [{ ...SHOP, on: false }] } },
    false,
    true,
    'run time',
  ],
]

for (const [why, given, file, on, origin] of ROWS) {
  test(`AuditControl decides ${on ? 'on' : 'off'}: ${why}`, () => {
    assert.deepEqual(mkAudit(given).decide(mkEndpoint('e', file)), { on, origin })
  })
}

test('AuditControl finds no setting for an endpoint with the name of a property of every object', () => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__']) {
    assert.deepEqual(mkAudit({}).decide(mkEndpoint(name)), { on: false, origin: undefined }, name)
  }
})

test('AuditControl keeps a setting for an endpoint with such a name', () => {
  const saved: AuditSettings[] = []
  const audit = mkAudit({}, saved)
  audit.setEndpoint('constructor', true)
  assert.deepEqual(audit.decide(mkEndpoint('constructor')), { on: true, origin: 'run time' })
  assert.deepEqual(saved.at(-1)?.endpoints, { constructor: true })
})

test('AuditControl saves one setting for each selector, the newest last', () => {
  const saved: AuditSettings[] = []
  const audit = mkAudit({}, saved)
  const selector = (app: string) => ({ matchLabels: new Map([['app', app]]) })
  audit.setSelector(selector('a'), true)
  audit.setSelector(selector('b'), true)
  audit.setSelector(selector('a'), false)
  assert.deepEqual(saved.at(-1)?.selectors, [
    { matchLabels: { app: 'b' }, on: true },
    { matchLabels: { app: 'a' }, on: false },
  ])
})

test('AuditControl applies the files again after a run-time setting is reset', () => {
  const saved: AuditSettings[] = []
  const audit = mkAudit({ selectors: [{ app: 'shop' }] }, saved)
  const byConfig = { on: true, origin: 'config' }
  const shop = { matchLabels: new Map([['app', 'shop']]) }
  const decide = () => audit.decide(mkEndpoint('e'))
  audit.setEndpoint('e', false)
  audit.setSelector(shop, false)
  assert.deepEqual(decide(), { on: false, origin: 'run time' })
  audit.setEndpoint('e', undefined)
  assert.deepEqual(decide(), { on: false, origin: 'run time, by selector' })
  audit.setSelector(shop, undefined)
  assert.deepEqual(decide(), byConfig)
  audit.setNode(true)
  assert.equal(nodeOf(audit), true)
  audit.setNode(undefined)
  assert.equal(nodeOf(audit), false)
  assert.deepEqual(saved.at(-1), NO_AUDIT_SETTINGS)
  audit.setNode(true)
  audit.setEndpoint('e', false)
  audit.reset()
  assert.deepEqual(decide(), byConfig)
  assert.equal(nodeOf(audit), false)
  assert.deepEqual(saved.at(-1), NO_AUDIT_SETTINGS)
})
