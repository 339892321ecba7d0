import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatChart } from './chart.ts'

test('formatChart draws each series from 0 to its largest value, and escapes names', () => {
  const text = formatChart(
    'a <b> & c',
    [0, 5, 10],
    [{ name: 'pairs', unit: 'known', values: [0, 50, 100] }],
  )
  assert.match(text, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /)
  assert.match(text, /a &lt;b> &amp; c/)
  const points = /points="([^"]*)"/
    .exec(text)?.[1]
    ?.split(' ')
    .map((pair) => pair.split(',').map(Number))
  assert.deepEqual(points, [
    [90, 170],
    [485, 105],
    [880, 40],
  ])
})

test('formatChart draws a picture for no values and for zeros', () => {
  const text = formatChart(
    'empty',
    [],
    [
      { name: 'a', unit: 's', values: [] },
      { name: 'b', unit: 's', values: [0, 0] },
    ],
  )
  assert.ok(!text.includes('NaN') && !text.includes('Infinity'))
})
