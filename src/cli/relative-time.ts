// Formats how long ago a time was, for people: `now`, `12s ago`, `5m ago`, `3h ago`, `2d ago`. Times to come are `in 5m`.

const SECOND_MS = 1000
const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', SECOND_MS],
]

/** Returns the time of an RFC 3339 text relative to `now` (wall-clock milliseconds). Returns a text that is no time unchanged. */
export function relativeTime(time: string, now: number): string {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return time
  const ago = now - at
  const amount = Math.abs(ago)
  const [unit, ms] = UNITS.find(([, each]) => amount >= each) ?? ['', SECOND_MS]
  if (unit === '') return 'now'
  const text = `${Math.floor(amount / ms)}${unit}`
  return ago > 0 ? `${text} ago` : `in ${text}`
}
