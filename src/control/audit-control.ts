// Who is audited and why (SEMANTICS 2 "Audit"): the whole node, the endpoints that a selector of the config
// matches, endpoints by their file, and what was said at run time, which wins until it is taken back and
// survives restarts. Holds settings only; who applies them asks `decide`.

import { indexLabels, selectorMatches } from '../policy/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'

/** What was said at run time, as it is kept. */
export interface AuditSettings {
  readonly node: boolean | undefined
  readonly endpoints: Readonly<Record<string, boolean>>
  /** The last one that matches decides. */
  readonly selectors: readonly {
    readonly matchLabels: Readonly<Record<string, string>>
    readonly on: boolean
  }[]
}

export const NO_AUDIT_SETTINGS: AuditSettings = { node: undefined, endpoints: {}, selectors: [] }

export interface AuditDecision {
  readonly on: boolean
  /** What turned it on; undefined when it is off. */
  readonly origin: string | undefined
}

/** What is known of an endpoint from its source. */
export interface Auditable {
  readonly name: string
  readonly labels: readonly string[]
  readonly audit: boolean
}

export class AuditControl {
  readonly #node: boolean
  readonly #selectors: readonly LabelSelector[]
  readonly #save: (settings: AuditSettings) => void
  #settings: AuditSettings

  constructor(options: {
    readonly node: boolean
    readonly selectors: readonly LabelSelector[]
    readonly settings: AuditSettings
    readonly save: (settings: AuditSettings) => void
  }) {
    this.#node = options.node
    this.#selectors = options.selectors
    this.#settings = options.settings
    this.#save = options.save
  }

  /** Whether the whole node is audited. */
  get node(): boolean {
    return this.#settings.node ?? this.#node
  }

  setNode(on: boolean): void {
    this.#change({ ...this.#settings, node: on })
  }

  setEndpoint(name: string, on: boolean): void {
    this.#change({ ...this.#settings, endpoints: { ...this.#settings.endpoints, [name]: on } })
  }

  setSelector(selector: LabelSelector, on: boolean): void {
    const matchLabels = Object.fromEntries(selector.matchLabels)
    const key = JSON.stringify(matchLabels)
    const others = this.#settings.selectors.filter(
      (each) => JSON.stringify(each.matchLabels) !== key,
    )
    this.#change({ ...this.#settings, selectors: [...others, { matchLabels, on }] })
  }

  decide(endpoint: Auditable): AuditDecision {
    const { endpoints } = this.#settings
    // An endpoint may have the name of something that every object has.
    const said = Object.hasOwn(endpoints, endpoint.name) ? endpoints[endpoint.name] : undefined
    if (said !== undefined) return decision(said, 'run time')
    const labels = indexLabels(endpoint.labels)
    const matching = this.#settings.selectors.filter(({ matchLabels }) =>
      selectorMatches({ matchLabels: new Map(Object.entries(matchLabels)) }, labels),
    )
    const last = matching.at(-1)
    if (last !== undefined) return decision(last.on, 'run time, by selector')
    if (endpoint.audit) return decision(true, 'endpoints file')
    return decision(
      this.#selectors.some((each) => selectorMatches(each, labels)),
      'config',
    )
  }

  #change(settings: AuditSettings): void {
    this.#settings = settings
    this.#save(settings)
  }
}

function decision(on: boolean, origin: string): AuditDecision {
  return { on, origin: on ? origin : undefined }
}
