// What `policy suggest` says of flows that policy denied.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { FlowFolder, mkLine, suggest, type Line } from '../../support/nodes/flow-lines.ts'

describe('policySuggestCommand, of denied flows,', () => {
  let flows: FlowFolder
  before(() => {
    flows = new FlowFolder()
  })
  after(() => flows.remove())

  it('proposes audit for the endpoints whose flows policy denied, and for no others', async () => {
    const [one, other] = [
      mkLine({ kind: 'denied', name: 'evil.example' }),
      mkLine({ kind: 'drop', peer: '192.0.2.66', app: 'batch' }),
    ]
    const rows = [
      [
        [one],
        [],
        /^namegate: 1 flow .*: evil\.example; .*\(namegate audit on --endpoint shop-1\)$/m,
      ],
      [
        [one, other],
        [],
        /^namegate: 2 flows .*\(namegate audit on --endpoint NAME, for each of batch-1, shop-1\)$/m,
      ],
      [
        [one, other],
        ['--labels', 'app=batch'],
        /^namegate: 1 flow .*: 192\.0\.2\.66 443\/TCP; .*\(namegate audit on --selector app=batch\)$/m,
      ],
    ] as const
    for (const [lines, labels, note] of rows) {
      const file = flows.put('denied.jsonl', lines)
      assert.match((await suggest('--flows', file, ...labels)).err, note)
    }
  })

  it('says nothing of denied flows that are allowed already, or allowed by the suggestion', async () => {
    const EARLY = '2026-01-02T03:00:00.000Z'
    const LATE = '2026-01-02T04:00:00.000Z'
    const place = { peer: '192.0.2.66', names: ['late.example'] }
    const list = flows.put('web.allow', ['www.example:443\n'])
    const rows: readonly (readonly [lines: readonly Line[], what: string, reason: string])[] = [
      [[{ kind: 'denied', name: 'www.example' }], '', 'the list allows the name'],
      [[{ kind: 'denied', name: 'web.example' }], 'web.example', 'the list does not'],
      [
        [{ kind: 'drop', peer: '192.0.2.9', names: ['www.example'] }],
        '',
        'the list allows the connection',
      ],
      [
        [{ kind: 'drop', peer: '192.0.2.9', port: 80, names: ['www.example'] }],
        'www.example 80/TCP',
        'not at this port',
      ],
      [
        [
          { kind: 'denied', name: 'a.example', time: EARLY },
          { name: 'a.example', time: LATE },
        ],
        '',
        'answered later',
      ],
      [
        [
          { kind: 'denied', name: 'a.example', time: EARLY, last: LATE, count: 2 },
          { name: 'a.example' },
        ],
        'a.example',
        'denied again after the answer',
      ],
      [
        [
          { kind: 'denied', name: 'a.example', time: EARLY },
          { name: 'a.example', time: LATE, app: 'batch' },
        ],
        'a.example',
        'answered to other endpoints',
      ],
      [
        [
          { kind: 'drop', ...place, time: EARLY },
          { kind: 'audit', ...place, time: LATE },
        ],
        '',
        'suggested',
      ],
    ]
    for (const [lines, what, reason] of rows) {
      const file = flows.put('denied.jsonl', lines.map(mkLine))
      const { err } = await suggest('--flows', file, '--policies', list)
      const found = /flows? that policy denied (?:is|are) not suggested: ([^;]*);/.exec(err)
      assert.equal(found?.[1] ?? '', what, `${reason}: ${err}`)
    }
  })
})
