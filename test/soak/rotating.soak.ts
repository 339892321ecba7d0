// A name like that of an object store: a pool of 5,000 addresses, 8 in each answer, TTL 5 s, 30 answers a second; here five times faster, TTL
// 1 s. No packet to an address of an answer may be denied within its TTL or grace, and all addresses have one identity.

import type { Identity } from '../../src/core/ids.ts'
import { systemClock } from '../../src/core/clock.ts'
import { firstOf, mkPolicy, mkWorld, setAddress } from '../bench/support/world.ts'
import { frame, SYN, tcp } from '../support/packets.ts'
import { PacketModel } from '../support/models/packet-model/packet-model.ts'
import { Random } from '../support/models/random.ts'
import { hashedName, teach } from '../support/hashed-name.ts'
import { runSoak } from './support/soak.ts'

const POOL = 5_000
const PER_ANSWER = 8
const ANSWERS = 30 * 5
const TTL_S = 1
const PROBES = 500
const datapath = new PacketModel({
  clock: systemClock,
  prefixesMax: 65_536,
  policyEntriesMax: 65_536,
  connectionsPerEndpoint: 65_536,
  tcpIdleMs: 21_600_000,
  udpIdleMs: 180_000,
})
const world = mkWorld(datapath, [mkPolicy('p', ['*.bench.test'])])
const endpoint = firstOf(world)
const { names, ipcache, allocator } = world.core
const name = hashedName('store.bench.test')
const random = new Random(1)
const octets = new Uint8Array(16)
/** The second until which each address of the pool is usable. */
const usable = new Int32Array(POOL)
const identities = new Set<Identity>()
const counts = { probes: 0, denied: 0 }

function probe(i: number): void {
  setAddress(octets, i)
  const row = ipcache.prefixes.find(4, octets, 0, 32)
  if (row !== 0) identities.add(ipcache.prefixes.identityOf(row))
  const target = [...octets.subarray(0, 4)].join('.')
  const packet = frame({ source: '10.255.0.0', target }, tcp({ from: 40_000, to: 443 }, SYN))
  counts.probes++
  if (datapath.judge(endpoint, 'from', packet) !== 'pass') counts.denied++
}

await runSoak({
  name: 'rotating',
  about: `a pool of ${POOL} addresses, ${PER_ANSWER} an answer, TTL ${TTL_S} s, ${ANSWERS} answers a second`,
  world,
  answersPerSecond: ANSWERS,
  answer() {
    for (let k = 0; k < PER_ANSWER; k++) {
      const i = random.below(POOL)
      setAddress(octets, i)
      teach(names, { endpoint, name, family: 4, octets, ttl: TTL_S })
      usable[i] = names.tick() + TTL_S + names.graceSeconds
    }
  },
  everySecond() {
    for (let n = 0; n < PROBES; n++) {
      const i = random.below(POOL)
      if ((usable[i] ?? 0) >= names.tick()) probe(i)
    }
  },
  figures: () => [
    { name: 'packets to addresses in their TTL or grace', value: counts.probes, unit: '' },
    { name: 'of them denied', value: counts.denied, unit: '', limit: 0 },
    { name: 'identities of the addresses', value: identities.size, unit: '', limit: 1 },
    { name: 'identities that answers made', value: allocator.dynamicInUse, unit: '', limit: 0 },
  ],
})
