// Draws lines over time as one SVG picture: a row per quantity, each with its own scale from 0. Needs no package.

export interface Series {
  readonly name: string
  readonly unit: string
  readonly values: readonly number[]
}

const WIDTH = 900
const ROW = 130
const LEFT = 90
const RIGHT = 20
const TOP = 40
const GAP = 34

/** `seconds`: the time of each value. */
export function formatChart(
  title: string,
  seconds: readonly number[],
  rows: readonly Series[],
): string {
  const height = TOP + rows.length * (ROW + GAP)
  const last = seconds.at(-1) ?? 0
  const parts = rows.map((row, i) => formatRow(row, seconds, last, TOP + i * (ROW + GAP)))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    `<text x="${LEFT}" y="20" font-size="15">${escape(title)}</text>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

function formatRow(
  { name, unit, values }: Series,
  seconds: readonly number[],
  last: number,
  top: number,
): string {
  const most = Math.max(...values, Number.MIN_VALUE)
  const x = (second: number): number => LEFT + (second / Math.max(last, 1)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => top + ROW - (value / most) * ROW
  const points = values.map((value, i) => `${x(seconds[i] ?? 0).toFixed(1)},${y(value).toFixed(1)}`)
  const bottom = top + ROW
  return [
    `<text x="${LEFT}" y="${top - 5}">${escape(`${name}, ${unit}`)}</text>`,
    `<path d="M${LEFT} ${top}V${bottom}H${WIDTH - RIGHT}" fill="none" stroke="#888"/>`,
    `<text x="${LEFT - 6}" y="${top + 10}" text-anchor="end">${formatNumber(most)}</text>`,
    `<text x="${LEFT - 6}" y="${bottom}" text-anchor="end">0</text>`,
    `<text x="${WIDTH - RIGHT}" y="${bottom + 14}" text-anchor="end">${last.toFixed(0)} s</text>`,
    `<polyline points="${points.join(' ')}" fill="none" stroke="#06c" stroke-width="1.5"/>`,
  ].join('\n')
}

function formatNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
