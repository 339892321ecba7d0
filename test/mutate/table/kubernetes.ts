// Kubernetes: which pods of other nodes have which labels, when a kind counts as missing, and who writes Events about what.

import { inFile, type Mutation } from '../mutation.ts'

const PEERS = ['test/kubernetes/cluster-peers.test.ts']
const MISSING = ['test/kubernetes/young-server.test.ts', 'test/kubernetes/reflector.test.ts']
const EVENTS = ['test/kubernetes/events.test.ts']

export const KUBERNETES: readonly Mutation[] = [
  ...inFile('src/kubernetes/cluster/cluster-peers.ts', PEERS, [
    ['pod.isOnHostNetwork || pod.hasFinished ? []', 'pod.isOnHostNetwork ? []'],
    ['pod.isOnHostNetwork || pod.hasFinished ? []', 'pod.hasFinished ? []'],
    ['!SPECIAL.isGuarded(family, octets, 0)', 'SPECIAL !== undefined'],
    [
      'before === undefined && this.#peers.size >= this.#options.peersMax',
      'before === undefined && this.#peers.size > this.#options.peersMax',
    ],
    [
      'const since = isSamePlace ? before.since :',
      'const since = isSamePlace && before.since === undefined ? before.since :',
    ],
    ['const isSamePlace = before?.pod.uid === pod.uid &&', 'const isSamePlace = before &&'],
    ['(holder !== undefined && isOlder(peer.since, since))', 'holder !== undefined'],
    ['peer.addresses.filter((each) => this.#holderOf(each) === name)', 'peer.addresses'],
    ['if (peer === undefined || namespaceLabels === undefined)', 'if (peer === undefined)'],
  ]),
  ...inFile('src/kubernetes/reflector/missing-look.ts', MISSING, [
    ['=> this.#wasReady || state === known', "=> this.#wasReady || state !== 'forbidden'"],
    ['=> this.#wasReady || state === known', "=> this.#wasReady || state !== 'absent'"],
    ['if (code === 200 || this.#isUnsaid(code)) {', 'if (code !== 0) {'],
    ['now - this.#unsaidSince >= UNSAID_MS', 'now - this.#unsaidSince >= 0'],
  ]),
  ...inFile('src/kubernetes/events/writer-lease.ts', EVENTS, [
    ['return this.#options.clock.now() < this.#heldUntil', 'return this.#heldUntil > 0'],
    ['- this.#changedAt >= leaseMs', '- this.#changedAt >= leaseMs / 2'],
    ['clock.now() + (leaseMs * 2) / 3', 'clock.now() + leaseMs * 2'],
    ['{ metadata: { resourceVersion: this.#version }, spec }', '{ metadata: {}, spec }'],
  ]),
  ...inFile('src/kubernetes/events/policy-events.ts', EVENTS, [
    ['if (this.#writer.isBusy || !this.#lease.isHeld) return', 'if (this.#writer.isBusy) return'],
    [
      'if (policies.uidOf(name) !== policy.uid) continue',
      "if (policies.uidOf(name) === '') continue",
    ],
    [
      'if (policies.uidOf(name) !== policy.uid) this.#told.delete(name)',
      'if (policies.uidOf(name) === undefined) this.#told.delete(name)',
    ],
  ]),
  ...inFile('src/kubernetes/events/event-writer.ts', EVENTS, [
    ['/ cannot (?:create|patch) resource /.test(message)', "message !== ''"],
  ]),
  ...inFile('src/kubernetes/events/policy-event.ts', EVENTS, [
    ['const max = TEXT_MAX - inForce.length', 'const max = TEXT_MAX'],
  ]),
]
