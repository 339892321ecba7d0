import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatLabel,
  indexLabels,
  labelKeyFault,
  labelValueFault,
  namespaceOf,
  parseLabels,
  policySelects,
  selectorMatches,
  splitLabel,
} from '../../../src/policy/match/labels.ts'
import type { LabelExpression } from '../../../src/policy/rule.ts'

const LABELS = [
  'k8s:app=shop',
  'external:app=store',
  'k8s:io.kubernetes.pod.namespace=prod',
  'k8s:flag',
  'own:a:b=c=d',
]

const SELECTORS: readonly (readonly [
  labels: Readonly<Record<string, string>>,
  expected: boolean,
  why: string,
])[] = [
  [{}, true, 'an empty selector selects everything'],
  [{ app: 'shop' }, true, 'no source matches the k8s label'],
  [{ app: 'store' }, true, 'no source matches the external label too'],
  [{ 'any:app': 'store' }, true, 'any: is the same as no source'],
  [{ 'k8s:app': 'shop' }, true, 'the source and the value fit'],
  [{ 'k8s:app': 'store' }, false, 'the value belongs to another source'],
  [{ 'other:app': 'shop' }, false, 'no label of this source'],
  [{ 'k8s.app': 'shop' }, false, 'a dot does not end a source'],
  [{ app: 'shop', 'external:app': 'store' }, true, 'both exist'],
  [{ app: 'shop', tier: '1' }, false, 'one is missing'],
  [{ App: 'shop' }, false, 'keys keep their case'],
  [{ app: 'Shop' }, false, 'values keep their case'],
  [{ flag: '' }, true, 'an empty value is a value'],
  [{ app: '' }, false, 'an empty value does not match every value'],
  [{ 'own:a:b': 'c=d' }, true, 'a colon in the key and an equals sign in the value'],
  [{ 'io.kubernetes.pod.namespace': 'prod' }, true, 'the namespace is a label like others'],
]

for (const [labels, expected, why] of SELECTORS) {
  test(`selectorMatches of ${JSON.stringify(labels)} is ${expected}: ${why}`, () => {
    const selector = { matchLabels: new Map(Object.entries(labels)) }
    assert.equal(selectorMatches(selector, indexLabels(LABELS)), expected)
  })
}

test('selectorMatches applies expressions to every source of the key', () => {
  const rows: readonly (readonly [
    key: string,
    operator: LabelExpression['operator'],
    values: readonly string[],
    expected: boolean,
    why: string,
  ])[] = [
    ['app', 'In', ['store', 'x'], true, 'one source has one of the values'],
    ['app', 'In', ['x'], false, 'none has'],
    ['app', 'NotIn', ['store'], false, 'one source has the value, another has not'],
    ['app', 'NotIn', ['x'], true, 'no source has the value'],
    ['tier', 'NotIn', ['x'], true, 'a missing label is not in the list'],
    ['k8s:app', 'NotIn', ['store'], true, 'the value belongs to another source'],
    ['flag', 'Exists', [], true, 'an empty value exists'],
    ['tier', 'Exists', [], false, 'missing'],
    ['tier', 'DoesNotExist', [], true, 'missing'],
    ['flag', 'DoesNotExist', [], false, 'one source has it'],
    ['app', 'DoesNotExist', [], false, 'two have it'],
  ]
  for (const [key, operator, values, expected, why] of rows) {
    const selector = { matchLabels: new Map(), matchExpressions: [{ key, operator, values }] }
    assert.equal(selectorMatches(selector, indexLabels(LABELS)), expected, `${key}: ${why}`)
  }
})

test('policySelects keeps a namespaced policy to its namespace', () => {
  const selector = { matchLabels: new Map([['app', 'shop']]) }
  const rows: readonly (readonly [string | undefined, readonly string[], boolean, string])[] = [
    ['prod', LABELS, true, 'the same namespace'],
    ['default', LABELS, false, 'another namespace'],
    [undefined, LABELS, true, 'a clusterwide policy'],
    ['default', ['k8s:app=shop'], true, 'an endpoint without namespace is in default'],
    ['prod', ['k8s:app=shop'], false, 'an endpoint without namespace is in default only'],
    ['prod', ['k8s:app=x', LABELS[2] ?? ''], false, 'the namespace alone is not enough'],
    [
      'prod',
      ['k8s:app=shop', 'external:io.kubernetes.pod.namespace=prod'],
      false,
      'the namespace label of another source does not count',
    ],
  ]
  for (const [namespace, labels, expected, why] of rows) {
    assert.equal(policySelects({ namespace, selector }, indexLabels(labels)), expected, why)
  }
})

test('indexLabels puts an endpoint without namespace into default', () => {
  assert.equal(namespaceOf(indexLabels([])), 'default')
  assert.equal(namespaceOf(indexLabels(LABELS)), 'prod')
  const selector = { matchLabels: new Map([['k8s:io.kubernetes.pod.namespace', 'default']]) }
  assert.ok(selectorMatches(selector, indexLabels(['k8s:app=shop'])), 'for a clusterwide selector')
})

test('splitLabel reverses formatLabel', () => {
  for (const text of LABELS) assert.equal(formatLabel(splitLabel(text)), text)
  assert.deepEqual(splitLabel('app=x'), { source: 'external', key: 'app', value: 'x' })
  assert.deepEqual(splitLabel('app=k8s:x'), { source: 'external', key: 'app', value: 'k8s:x' })
})

test('labelKeyFault and labelValueFault refuse ambiguous texts', () => {
  for (const key of ['', 'k8s:', 'a b', 'a=b', 'a\nb', ' k8s:a', 'x'.repeat(513)]) {
    assert.notEqual(labelKeyFault(key), undefined, JSON.stringify(key))
  }
  for (const key of ['app', 'k8s:app', 'app.kubernetes.io/name', 'a:b:c']) {
    assert.equal(labelKeyFault(key), undefined, key)
  }
  assert.equal(labelValueFault('a b=c'), undefined)
  assert.notEqual(labelValueFault('a\u0000'), undefined)
  assert.notEqual(labelValueFault('x'.repeat(513)), undefined)
})

test('parseLabels reads labels of one line, of any source if none is written', () => {
  const rows: readonly (readonly [text: string, labels: readonly string[], reason: string])[] = [
    ['', [], 'none'],
    ['app=web', ['external:app=web', 'k8s:app=web'], 'of any source'],
    ['k8s:app=web, own:tier=a', ['k8s:app=web', 'own:tier=a'], 'each of its own'],
    [
      'io.kubernetes.pod.namespace=prod',
      ['k8s:io.kubernetes.pod.namespace=prod'],
      'Kubernetes only',
    ],
    ['canary', ['external:canary', 'k8s:canary'], 'no value'],
    ['url=a=b', ['external:url=a=b', 'k8s:url=a=b'], 'the first equals sign parts'],
    [
      'namegate.io/default-egress=deny',
      ['external:namegate.io/default-egress=deny', 'k8s:namegate.io/default-egress=deny'],
      'its own label',
    ],
  ]
  for (const [text, labels, reason] of rows) {
    assert.deepEqual(parseLabels(text), { kind: 'ok', labels }, reason)
  }
})

test('parseLabels reports what is no label', () => {
  for (const text of ['=a', 'a b=c', 'k8s:=x', '/:a=b']) {
    const read = parseLabels(`app=web,${text}`)
    assert.ok(read.kind === 'bad' && read.reason.includes(JSON.stringify(text)), text)
  }
})
