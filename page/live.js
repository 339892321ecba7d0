// Keeps the connection to the daemon and what came over it: the latest state, the counters of the last minutes, and the refusals. A lost
// connection is made again, and what was shown stays until then.

const HISTORY_MAX = 300
const REFUSALS_MAX = 300
const RETRY_MS = [500, 1000, 2000, 5000, 10_000]
/** The daemon sends a line each second. After this time without one, the connection counts as lost. */
const SILENT_MS = 15_000

export class Live {
  /** `connecting`, `live` or `lost`. */
  connection = 'connecting'
  overview = undefined
  /** Counters, oldest first: { at (milliseconds of the daemon's clock), time (seconds of this clock), samples }. */
  history = []
  /** Key -> refusal, in the order in which each was first seen. A row stays at its place, so that a reader can work with it. */
  refusals = new Map()
  /** Refusals that the daemon counted without a row. */
  left = 0
  #failures = 0
  #onChange = () => undefined

  constructor(onChange) {
    this.#onChange = onChange
    void this.#run()
  }

  clearRefusals() {
    this.refusals = new Map()
    this.left = 0
    this.#onChange()
  }

  async #run() {
    for (;;) {
      try {
        await this.#read()
      } catch {
        // The reason is not shown to scripts; what people see is that the connection is lost.
      }
      this.connection = 'lost'
      this.#onChange()
      const wait = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)]
      await new Promise((resolve) => setTimeout(resolve, wait))
    }
  }

  async #read() {
    const abort = new AbortController()
    let timer = setTimeout(() => abort.abort(), SILENT_MS)
    try {
      const response = await fetch('/page/live', { signal: abort.signal })
      if (response.status === 401) location.reload()
      if (!response.ok) throw new Error(`status ${response.status}`)
      let rest = ''
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(() => abort.abort(), SILENT_MS)
        const lines = (rest + value).split('\n')
        rest = lines.pop()
        for (const line of lines) this.#take(JSON.parse(line))
        this.#failures = 0
        this.connection = 'live'
        this.#onChange()
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #take({ overview, refusals, left, allowed }) {
    if (overview !== undefined) {
      this.overview = overview
      const { at, samples } = overview
      const before = this.history.at(-1)
      // The daemon started anew: its clock and its counters did, too.
      if (before !== undefined && at < before.at) this.history = []
      if (before?.at !== at) this.history.push({ at, time: Date.now() / 1000, samples })
      if (this.history.length > HISTORY_MAX) this.history.shift()
    }
    if (left !== undefined) this.left += left
    for (const row of refusals ?? []) {
      const known = this.refusals.get(row.key)
      // After a lost connection the daemon sends rows again.
      if (known !== undefined && known.time >= row.time) continue
      const types = [...new Set([...(known?.types ?? []), ...row.types])]
      this.refusals.set(row.key, { ...row, types, count: (known?.count ?? 0) + row.count })
    }
    for (const key of allowed ?? []) this.refusals.delete(key)
    while (this.refusals.size > REFUSALS_MAX) this.#forgetOldest()
  }

  #forgetOldest() {
    let oldest
    for (const row of this.refusals.values()) {
      if (oldest === undefined || row.time < oldest.time) oldest = row
    }
    this.refusals.delete(oldest.key)
  }

  /** What counters rose per second between two samples: the sum of the series that `fits` takes. */
  rate(newer, older, fits) {
    if (newer === undefined || older === undefined) return undefined
    const seconds = (newer.at - older.at) / 1000
    if (seconds <= 0) return undefined
    let sum = 0
    for (const [series, value] of Object.entries(newer.samples)) {
      if (fits(series)) sum += value - (older.samples[series] ?? 0)
    }
    return sum < 0 ? undefined : sum / seconds
  }
}

/** `name{a="x",le="1"}` -> { name, labels: { a: 'x', le: '1' } }. */
export function parseSeries(series) {
  const [, name, inner = ''] = /^([a-z0-9_]+)(?:\{(.*)\})?$/.exec(series) ?? [undefined, series]
  const labels = {}
  for (const [, key, value] of inner.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value
  return { name, labels }
}
