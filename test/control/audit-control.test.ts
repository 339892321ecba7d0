import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AuditControl,
  NO_AUDIT_SETTINGS,
  type AuditSettings,
} from '../../src/control/audit-control.ts'

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

const SHOP = { matchLabels: { app: 'shop' } }

const ROWS: readonly (readonly [
  why: string,
  given: Given,
  file: boolean,
  origin: string | undefined,
])[] = [
  ['nobody said anything', {}, false, undefined],
  ['its file says so', {}, true, 'endpoints file'],
  ['a selector of the config matches', { selectors: [{ app: 'shop' }] }, false, 'config'],
  ['one that does not match', { selectors: [{ app: 'other' }] }, false, undefined],
  ['run time wins over its file', { settings: { endpoints: { e: false } } }, true, undefined],
  ['run time says so', { settings: { endpoints: { e: true } } }, false, 'run time'],
  [
    'a selector of run time',
    { settings: { selectors: [{ ...SHOP, on: true }] } },
    false,
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
    undefined,
  ],
  [
    'its name wins over a selector',
    { settings: { endpoints: { e: true }, selectors: [{ ...SHOP, on: false }] } },
    false,
    'run time',
  ],
]

for (const [why, given, file, origin] of ROWS) {
  test(`AuditControl decides ${origin === undefined ? 'off' : origin}: ${why}`, () => {
    const decision = mkAudit(given).decide(mkEndpoint('e', file))
    assert.deepEqual(decision, { on: origin !== undefined, origin })
  })
}

test('AuditControl finds no setting for an endpoint that is named as something every object has', () => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__']) {
    assert.deepEqual(mkAudit({}).decide(mkEndpoint(name)), { on: false, origin: undefined }, name)
  }
})

test('AuditControl keeps a setting for an endpoint that is named so', () => {
  const saved: AuditSettings[] = []
  const audit = mkAudit({}, saved)
  audit.setEndpoint('constructor', true)
  assert.deepEqual(audit.decide(mkEndpoint('constructor')), { on: true, origin: 'run time' })
  assert.deepEqual(saved.at(-1)?.endpoints, { constructor: true })
})

test('AuditControl saves one setting per selector, the newest last', () => {
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
