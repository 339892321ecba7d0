// What is known: names, prefixes and their facts, label sets and identities.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

export function addKnowledgeMetrics(registry: Registry, { core }: MetricsSources): void {
  addNameMetrics(registry, core)
  addIpcacheMetrics(registry, core)
  addIdentityMetrics(registry, core)
}

function addNameMetrics(registry: Registry, { names, expiry }: MetricsSources['core']): void {
  addGauge(registry, {
    name: 'names',
    help: 'Names known from answers',
    read: () => names.names.slots.used,
  })
  addGauge(registry, {
    name: 'name_mappings',
    help: '(name, address) mappings known',
    read: () => names.mappings.slots.used,
  })
  addGauge(registry, {
    name: 'name_pairs',
    help: '(endpoint, name, address) pairs known',
    read: () => names.entries.slots.used,
  })
  addCounter(registry, {
    name: 'name_pairs_expired_total',
    help: 'Pairs whose time was over: forgotten, or kept because a connection is open',
    label: 'result',
    read: () => [
      ['forgotten', expiry.forgotten],
      ['kept', expiry.kept],
    ],
  })
  addCounter(registry, {
    name: 'name_expired_uses_total',
    help: 'Connections seen to have begun to an address after the TTL of its name: clients that ignore TTLs',
    read: () => expiry.expiredUses,
  })
  addCounter(registry, {
    name: 'names_refused_total',
    help: 'Addresses of answers that a bound kept from being learned',
    read: () => names.boundHits,
  })
}

function addIpcacheMetrics(registry: Registry, { ipcache }: MetricsSources['core']): void {
  addGauge(registry, {
    name: 'ipcache_prefixes',
    help: 'Prefixes known',
    read: () => ipcache.prefixes.slots.used,
  })
  addGauge(registry, {
    name: 'ipcache_facts',
    help: 'Facts (prefix, owner) known',
    read: () => ipcache.facts.slots.used,
  })
  addCounter(registry, {
    name: 'ipcache_conflicts_total',
    help: 'Times that two owners claimed the same label key of one prefix',
    read: () => ipcache.conflicts,
  })
}

function addIdentityMetrics(registry: Registry, core: MetricsSources['core']): void {
  const { allocator, labelSets } = core
  addGauge(registry, {
    name: 'identities',
    help: 'Identities in use; dynamic ones were made by answers',
    label: 'kind',
    read: () => [
      ['static', allocator.inUse - allocator.dynamicInUse],
      ['dynamic', allocator.dynamicInUse],
    ],
  })
  addCounter(registry, {
    name: 'identities_allocated_total',
    help: 'Numbers given out',
    read: () => allocator.allocations,
  })
  addCounter(registry, {
    name: 'identity_fallbacks_total',
    help: 'Times that the bound made an identity with fewer fqdn labels stand in',
    read: () => allocator.fallbacks,
  })
  addGauge(registry, {
    name: 'label_sets',
    help: 'Distinct label sets',
    read: () => labelSets.size,
  })
}
