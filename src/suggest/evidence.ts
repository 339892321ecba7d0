// Evidence collects what supports a suggested rule: the number of flows, their times, endpoints and nodes. It only grows, and its text does
// not depend on the order of the flows.

/** One observation: one line of recorded flows, which can stand for several flows, or one flow. */
export interface Sighting {
  readonly count: number
  /** The time of the first flow: RFC 3339 UTC with milliseconds, so that text order is time order. Empty when unknown. */
  readonly first: string
  readonly last: string
  readonly endpoint: string
  /** The name of the node. Empty when unknown. */
  readonly node: string
}

/** How many names of endpoints, and how many of nodes, the text contains at most. */
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

  /** Returns a text such as `12 flows of shop-1, shop-2 on n1, 2026-01-02T03:04:05Z to 2026-01-02T04:00:00Z`. */
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

/** Returns new evidence that joins all the given evidence. */
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
