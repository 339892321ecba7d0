// AuditControl decides which endpoints are audited, and says why (docs/spec/semantics 2 "Audit"). The config can audit the whole node or
// the endpoints that a selector matches. The endpoints file can audit single endpoints. Settings made at run time win over the config
// and the file until they are removed, and they survive restarts.

import { indexLabels, selectorMatches } from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'

/** The settings made at run time, as they are saved. */
export interface AuditSettings {
  readonly node: boolean | undefined
  readonly endpoints: Readonly<Record<string, boolean>>
  /** If several selectors match, the last one wins. */
  readonly selectors: readonly {
    readonly matchLabels: Readonly<Record<string, string>>
    readonly on: boolean
  }[]
}

export const NO_AUDIT_SETTINGS: AuditSettings = { node: undefined, endpoints: {}, selectors: [] }

/** Says if something is audited, and why. */
export interface AuditDecision {
  readonly on: boolean
  /** Where the setting was made; undefined if nothing was set. */
  readonly origin: string | undefined
}

const RUN_TIME = 'run time'
const CONFIG = 'config'
const UNSAID: AuditDecision = { on: false, origin: undefined }

/** An endpoint as its source describes it. */
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

  /** Says if the whole node is audited. */
  get node(): AuditDecision {
    const { node } = this.#settings
    if (node !== undefined) return { on: node, origin: RUN_TIME }
    return this.#node ? { on: true, origin: CONFIG } : UNSAID
  }

  /** Turns audit of the whole node on or off at run time. Undefined removes the setting. */
  setNode(on: boolean | undefined): void {
    this.#change({ ...this.#settings, node: on })
  }

  /** Turns audit of one endpoint on or off at run time. Undefined removes the setting. */
  setEndpoint(name: string, on: boolean | undefined): void {
    const others = Object.entries(this.#settings.endpoints).filter(([each]) => each !== name)
    const endpoints = Object.fromEntries(on === undefined ? others : [...others, [name, on]])
    this.#change({ ...this.#settings, endpoints })
  }

  /** Turns audit of all endpoints that a selector matches on or off at run time. Undefined removes the setting. */
  setSelector(selector: LabelSelector, on: boolean | undefined): void {
    const matchLabels = Object.fromEntries(selector.matchLabels)
    const key = JSON.stringify(matchLabels)
    const others = this.#settings.selectors.filter(
      (each) => JSON.stringify(each.matchLabels) !== key,
    )
    const selectors = on === undefined ? others : [...others, { matchLabels, on }]
    this.#change({ ...this.#settings, selectors })
  }

  /** Removes all settings that were made at run time. */
  reset(): void {
    this.#change(NO_AUDIT_SETTINGS)
  }

  /**
   * Decides for one endpoint. The first setting in this order wins: a run-time setting for its name, a run-time setting for a selector,
   * the endpoints file, a selector in the config.
   */
  decide(endpoint: Auditable): AuditDecision {
    const { endpoints } = this.#settings
    // The name of an endpoint can equal a property that every object has.
    const said = Object.hasOwn(endpoints, endpoint.name) ? endpoints[endpoint.name] : undefined
    if (said !== undefined) return { on: said, origin: RUN_TIME }
    const labels = indexLabels(endpoint.labels)
    const matching = this.#settings.selectors.filter(({ matchLabels }) =>
      selectorMatches({ matchLabels: new Map(Object.entries(matchLabels)) }, labels),
    )
    const last = matching.at(-1)
    if (last !== undefined) return { on: last.on, origin: `${RUN_TIME}, by selector` }
    if (endpoint.audit) return { on: true, origin: 'endpoints file' }
    const isSelected = this.#selectors.some((each) => selectorMatches(each, labels))
    return isSelected ? { on: true, origin: CONFIG } : UNSAID
  }

  #change(settings: AuditSettings): void {
    this.#settings = settings
    this.#save(settings)
  }
}
