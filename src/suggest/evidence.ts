// The evidence of a suggested rule: how many flows, when, from which endpoints, on which nodes. It only grows, and its text is the
// same for every order of the flows.

/** One line of kept flows, or one flow. */
export interface Sighting {
  readonly count: number
  /** RFC 3339 UTC with milliseconds, so that text order is time order; empty when unknown. */
  readonly first: string
  readonly last: string
  readonly endpoint: string
  /** Empty when unknown. */
  readonly node: string
}

/** Names of endpoints and of nodes that are written out. */
const NAMES_MAX = 4

export class Evidence {
  count = 0
  first = ''
  last = ''
  readonly endpoints = new Set<string>()
  readonly nodes = new Set<string>()

  add({ count, first, last, endpoint, node }: Sighting): void {
    this.endpoints.add(endpoint)
    if (node !== '') this.nodes.add(node)
    this.#extend(count, first, last)
  }

  merge(other: Evidence): this {
    for (const each of other.endpoints) this.endpoints.add(each)
    for (const each of other.nodes) this.nodes.add(each)
    this.#extend(other.count, other.first, other.last)
    return this
  }

  /** `12 flows of shop-1, shop-2 on n1, 2026-01-02T03:04:05Z to 2026-01-02T04:00:00Z` */
  get words(): string {
    const flows = this.count === 1 ? '1 flow' : `${this.count} flows`
    const nodes = this.nodes.size === 0 ? '' : ` on ${listed(this.nodes)}`
    const when = this.first === '' ? '' : `, ${between(this.first, this.last)}`
    return `${flows} of ${listed(this.endpoints)}${nodes}${when}`
  }

  #extend(count: number, first: string, last: string): void {
    this.count += count
    if (first !== '' && (this.first === '' || first < this.first)) this.first = first
    if (last > this.last) this.last = last
  }
}

export function allOf(evidence: Iterable<Evidence>): Evidence {
  const all = new Evidence()
  for (const each of evidence) all.merge(each)
  return all
}

function listed(names: ReadonlySet<string>): string {
  const sorted = [...names].sort()
  const shown = sorted.slice(0, NAMES_MAX).join(', ')
  return sorted.length > NAMES_MAX ? `${shown} and ${sorted.length - NAMES_MAX} more` : shown
}

function between(first: string, last: string): string {
  const [from, to] = [seconds(first), seconds(last)]
  return from === to ? from : `${from} to ${to}`
}

function seconds(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z')
}
