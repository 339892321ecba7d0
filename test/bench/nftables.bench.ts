// Learned addresses into nftables maps. The kernel confirms each commit before the next begins. The time is that of the event loop: from
// `commit` to `onCommitted`. Runs in a network namespace of its own. The exact map grows during the measurement.

import { identity } from '../../src/core/ids.ts'
import { parsePrefix } from '../../src/core/ip.ts'
import type { Changes, CommitResult } from '../../src/datapath/entries.ts'
import { NftablesDatapath } from '../../src/datapath/nftables/adapter.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'
import { isBuilt, loadNetlink, loadPosix } from '../../src/native/native.ts'
import { runBench, type Figure } from './support/bench.ts'
import { median } from './support/measure.ts'
import { setAddress } from './support/world.ts'

const PREFIXES_MAX = 1_000_000
const LEARNED = identity(2 ** 24)
const WORLD = identity(9)
/** Number of wider prefixes beside the addresses, some inside others. */
const RANGES = 1000
const ALONE = 2000
const ROUNDS = 200
/** 30,000 a second. */
const PER_ADDRESS_MAX_US = 33.3
const ALONE_MAX_US = 300

class Writer {
  readonly datapath: NftablesDatapath
  #next = 0
  #ended: (result: CommitResult) => void = () => undefined

  constructor() {
    this.datapath = new NftablesDatapath({
      netlink: loadNetlink(),
      posix: loadPosix(),
      prefixesMax: PREFIXES_MAX,
      policyEntriesMax: 1024,
    })
    this.datapath.start()
    this.datapath.onCommitted((result) => this.#ended(result))
  }

  /** Microseconds until so many new addresses are confirmed. */
  async write(count: number): Promise<number> {
    const batch = new PrefixBatch(count)
    const octets = new Uint8Array(16)
    for (let i = 0; i < count; i++) {
      setAddress(octets, this.#next++)
      batch.add({ family: 4, octets, length: 32 }, LEARNED, WORLD)
    }
    return await this.commit(batch)
  }

  async commit(prefixUpserts: PrefixBatch): Promise<number> {
    const changes: Changes = {
      policyUpserts: [],
      prefixUpserts,
      endpointUpserts: [],
      endpointRemovals: [],
      prefixRemovals: new PrefixBatch(1),
      policyRemovals: [],
    }
    const began = performance.now()
    const result = await new Promise<CommitResult>((done) => {
      this.#ended = done
      const atOnce = this.datapath.commit(changes)
      if (atOnce !== undefined) done(atOnce)
    })
    if (result.length > 0) throw new Error(`Cannot write: ${JSON.stringify(result[0])}`)
    return (performance.now() - began) * 1000
  }
}

function ranges(): PrefixBatch {
  const batch = new PrefixBatch(RANGES)
  for (let i = 0; i < RANGES; i++) {
    const length = i % 4 === 0 ? 16 : 24
    const text = `100.${i >> 2}.${length === 16 ? 0 : i % 4}.0/${length}`
    const parsed = parsePrefix(text)
    if (parsed.kind !== 'ok') throw new Error(`Not a prefix: ${text}`)
    batch.add(parsed.prefix, LEARNED, WORLD)
  }
  return batch
}

async function batches(writer: Writer, size: number): Promise<Figure> {
  const rounds: number[] = []
  for (let i = 0; i < ROUNDS; i++) rounds.push((await writer.write(size)) / size)
  const sum = rounds.reduce((all, each) => all + each, 0)
  return {
    name: `an address in batches of ${size} (${Math.round((1e6 * ROUNDS) / sum)} a second)`,
    value: median(rounds),
    unit: 'us',
    limit: PER_ADDRESS_MAX_US,
    spread: [Math.min(...rounds), Math.max(...rounds)],
  }
}

async function run(): Promise<readonly Figure[]> {
  if (process.getuid?.() !== 0 || !isBuilt('nftables')) {
    process.stderr.write('nftables: left out: it needs root and npm run build\n')
    return []
  }
  loadPosix().unshareNetwork()
  const alive = setInterval(() => undefined, 1000)
  const writer = new Writer()
  try {
    const cutting = await writer.commit(ranges())
    const alone: number[] = []
    for (let i = 0; i < ALONE; i++) alone.push(await writer.write(1))
    return [
      {
        name: 'one address alone, from commit to confirmation, median',
        value: median(alone),
        unit: 'us',
        limit: ALONE_MAX_US,
      },
      await batches(writer, 64),
      await batches(writer, 256),
      { name: `${RANGES} configured prefixes in one commit`, value: cutting / 1000, unit: 'ms' },
    ]
  } finally {
    clearInterval(alive)
    writer.datapath.stop({ leaveEnforcing: false })
  }
}

await runBench({ name: 'nftables', about: 'learned addresses into nftables, confirmed', run })
