// Parses and formats durations and sizes as people write them in the config: a whole number and a unit. Inside the program a duration is
// milliseconds and a size is octets, both safe integers.

const DURATION_UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

const SIZE_UNITS: ReadonlyMap<string, number> = new Map([
  ['KiB', 2 ** 10],
  ['MiB', 2 ** 20],
  ['GiB', 2 ** 30],
])

/** The longest time for which the config can keep an address alive: ten years. */
export const LONGEST_MS = 10 * 365 * 86_400_000

export const DURATION_FORM = 'a duration: a whole number and ms, s, m, h or d, such as 30s'
export const SIZE_FORM = 'a size: a whole number and KiB, MiB or GiB, such as 64MiB'
/** The form of a duration as a pattern, for JSON Schema. */
export const DURATION_PATTERN = /^[0-9]+(ms|s|m|h|d)$/
export const SIZE_PATTERN = /^[0-9]+(KiB|MiB|GiB)$/

/** Converts `90s` to 90000 milliseconds. Returns undefined when the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  return parse(text, DURATION_PATTERN, DURATION_UNITS)
}

/** Converts `64MiB` to 67108864 octets. Returns undefined when the text is not a size. */
export function parseSize(text: string): number | undefined {
  return parse(text, SIZE_PATTERN, SIZE_UNITS)
}

function parse(text: string, form: RegExp, units: ReadonlyMap<string, number>): number | undefined {
  const unit = form.exec(text)?.[1]
  const factor = unit === undefined ? undefined : units.get(unit)
  if (unit === undefined || factor === undefined) return undefined
  const value = Number(text.slice(0, -unit.length)) * factor
  return Number.isSafeInteger(value) ? value : undefined
}

/** Formats milliseconds in the largest unit that divides them: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  return format(ms, DURATION_UNITS, 'ms')
}

/** Formats octets in the largest unit that divides them. A size that no unit divides is in `B`, which no parser reads. */
export function formatSize(octets: number): string {
  return format(octets, SIZE_UNITS, 'B')
}

function format(value: number, units: ReadonlyMap<string, number>, smallest: string): string {
  let text = `${value}${smallest}`
  if (value === 0) return text
  for (const [unit, factor] of units) if (value % factor === 0) text = `${value / factor}${unit}`
  return text
}
