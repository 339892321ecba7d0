// Makes the Events that `kubectl describe` shows for a policy. A policy has one Event for each reason, with a name that follows from its UID.
// So every writer changes the same object.

import type { FaultyPolicy } from '../cluster/cluster-policies.ts'

export const EVENTS = { apiVersion: 'v1', kind: 'Event', resource: 'events' } as const

export interface PolicyEvent {
  readonly policy: FaultyPolicy
  readonly reason: 'PolicyFault' | 'PolicyMended'
  readonly text: string
  /** How often the writer has written it, this time included. */
  readonly count: number
  /** The time of the first writing, in wall-clock milliseconds. */
  readonly since: number
}

/** The newer API of Events takes no longer texts. */
const TEXT_MAX = 1_000

/** Says what is wrong with a policy, as `namegate get policies` does, and what `node` enforces instead. */
export function faultText({ faults, hasLastGood }: FaultyPolicy, node: string): string {
  const what = faults.map(({ message }) => message).join('; ')
  const inForce = hasLastGood
    ? `; the last good version stays in force on ${node}`
    : `; nothing of the policy is in force on ${node}`
  const max = TEXT_MAX - inForce.length
  return (what.length > max ? `${what.slice(0, max - 3)}...` : what) + inForce
}

export const MENDED = 'the policy has no fault any more'

/** The namespace of a policy's Events. Events about objects without a namespace are in `default`. */
export function namespaceOf({ policy }: PolicyEvent): string {
  return policy.namespace ?? 'default'
}

export function nameOf({ policy, reason }: PolicyEvent): string {
  return `namegate-${reason === 'PolicyFault' ? 'fault' : 'mended'}-${policy.uid}`
}

/** The Event as the API takes it. `now` is a time in wall-clock milliseconds. */
export function bodyOf(event: PolicyEvent, node: string, now: number): object {
  const { policy, reason, text, count, since } = event
  const { apiVersion, kind, namespace, name, uid } = policy
  return {
    apiVersion: EVENTS.apiVersion,
    kind: EVENTS.kind,
    metadata: { name: nameOf(event), namespace: namespaceOf(event) },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type: reason === 'PolicyFault' ? 'Warning' : 'Normal',
    reason,
    message: text,
    source: { component: 'namegate', host: node },
    reportingComponent: 'namegate',
    reportingInstance: node,
    firstTimestamp: timeOf(since),
    lastTimestamp: timeOf(now),
    count,
  }
}

/** The times of Events have whole seconds. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, '')
}
