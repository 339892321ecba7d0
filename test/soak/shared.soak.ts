// The load of cilium#48359: 600,000 names on shared addresses with an open connection, so that none is removed when its time is over.
// Meanwhile answers for other names arrive. At two thirds the connections close, and all 600,000 are removed. No answer may wait longer
// than 20 ms for this.

import { firstOf, mkMemory, mkPolicy, mkWorld, setAddress } from '../bench/support/world.ts'
import { hashedName, teach } from '../support/hashed-name.ts'
import { runSoak } from './support/soak.ts'
import { ConnectedPeers } from './support/connected-peers.ts'

const NAMES = 600_000
const SHARED = 6
const ANSWERS = 2_000
/** Other names, each with an address of its own. */
const OTHERS = 20_000
const LATE_MAX_MS = 20

const peers = new ConnectedPeers(mkMemory())
const world = mkWorld(peers.datapath, [mkPolicy('p', ['**.bench.test'])])
const endpoint = firstOf(world)
const octets = new Uint8Array(16)
for (let i = 0; i < SHARED; i++) {
  setAddress(octets, i)
  peers.open(endpoint, octets)
}
for (let i = 0; i < NAMES; i++) {
  setAddress(octets, i % SHARED)
  const name = hashedName(`host-${i}.apps.bench.test`)
  teach(world.core.names, { endpoint, name, family: 4, octets, ttl: 1 })
  if (i % 64 === 0) world.core.committer.commit()
}
world.core.committer.commit()
let next = 0

await runSoak({
  name: 'shared',
  about: `${NAMES} names on ${SHARED} addresses with an open connection, ${ANSWERS} answers a second for others`,
  world,
  answersPerSecond: ANSWERS,
  lateMaxMs: LATE_MAX_MS,
  answer() {
    const i = next++ % OTHERS
    setAddress(octets, SHARED + i)
    const name = hashedName(`other-${i}.apps.bench.test`)
    teach(world.core.names, { endpoint, name, family: 4, octets, ttl: 2 })
  },
  everySecond(second, seconds) {
    if (second === Math.floor((seconds * 2) / 3)) peers.closeAll()
  },
  figures({ pairs }) {
    const kept = pairs[Math.floor(pairs.length / 2)] ?? 0
    return [
      { name: 'pairs that connections kept', value: kept, unit: '' },
      { name: 'pairs at the end', value: pairs.at(-1) ?? 0, unit: '', limit: OTHERS },
    ]
  },
})
