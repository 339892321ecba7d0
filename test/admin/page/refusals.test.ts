// The rows of refusals that the page shows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Folded } from '../../../src/admin/page/refusals.ts'
import { DROP_SHAPE } from '../../support/nodes/packet-shape.ts'

test('Folded shows that a refused address is guarded', () => {
  const folded = new Folded(10, () => true)
  folded.add(DROP_SHAPE)
  folded.add({ ...DROP_SHAPE, peer: '169.254.169.254', guarded: true })
  assert.deepEqual(
    folded.rows.map(({ what, guarded }) => [what, guarded]),
    [
      ['203.0.113.9 443/TCP', false],
      ['169.254.169.254 443/TCP', true],
    ],
  )
})
