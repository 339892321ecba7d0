import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLabels } from '../../src/policy/label-texts.ts'

test('parseLabels takes labels of one line, of any source where none is written', () => {
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

test('parseLabels says what is no label', () => {
  for (const text of ['=a', 'a b=c', 'k8s:=x', '/:a=b']) {
    const read = parseLabels(`app=web,${text}`)
    assert.ok(read.kind === 'bad' && read.reason.includes(JSON.stringify(text)), text)
  }
})
