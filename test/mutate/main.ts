// npm run mutate [-- --only PART... --shard I/N --jobs N]
//   Changes single lines of security-relevant files, one at a time, in a copy of the tree, and runs the tests that should notice. Prints
//   each as killed, survived or equivalent. Exits with 1 if one survived that the table does not explain, or if a row of the table no longer
//   fits the tree. Run it as root, because tests in namespaces are otherwise left out.
//   --only PART   only rows whose file or line contains the text; can be repeated
//   --shard I/N   only every Nth row from the Ith on, for several runs at once
//   --jobs N      the number of copies of the tree that work at once; default: the number of processors

import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import type { Mutation } from './mutation.ts'
import { MUTATIONS } from './table.ts'
import { Tree } from './tree.ts'

type Outcome = 'killed' | 'survived' | 'equivalent' | 'ERROR'

/** The time limit of a test file, as a multiple of its time without a change. It bounds the cost of a change that hangs. */
const TIMES_AS_LONG = 5
const LIMIT_LEAST_MS = 30_000
const LIMIT_UNCHANGED_MS = 300_000

function chosen(only: readonly string[], shard: string): readonly Mutation[] {
  const [index = 0, count = 0] = shard.split('/').map(Number)
  if (!(count >= 1 && index >= 1 && index <= count)) throw new Error(`--shard I/N, not ${shard}`)
  return MUTATIONS.filter(
    ({ file, before }) =>
      only.length === 0 || only.some((part) => file.includes(part) || before.includes(part)),
  ).filter((_, i) => i % count === index - 1)
}

/** Test files, and the time of each without a change; undefined if it fails without one. Each is tried once. */
class Unchanged {
  readonly #times = new Map<string, Promise<number | undefined>>()

  async timeOf(tree: Tree, test: string): Promise<number | undefined> {
    const known = this.#times.get(test) ?? this.#try(tree, test)
    this.#times.set(test, known)
    return await known
  }

  async #try(tree: Tree, test: string): Promise<number | undefined> {
    // Building takes longer than most tests.
    await tree.build()
    const began = performance.now()
    return (await tree.passes(test, LIMIT_UNCHANGED_MS)) ? performance.now() - began : undefined
  }
}

/** The result of a mutation, and the test or the reason. */
async function tryOne(
  tree: Tree,
  unchanged: Unchanged,
  mutation: Mutation,
): Promise<readonly [Outcome, string]> {
  if (mutation.equivalent !== undefined) {
    await tree.with(mutation, async () => await tree.build())
    return ['equivalent', mutation.equivalent]
  }
  for (const test of mutation.tests) {
    const usualMs = await unchanged.timeOf(tree, test)
    if (usualMs === undefined) return ['ERROR', `${test} fails where nothing is changed`]
    const limitMs = Math.max(LIMIT_LEAST_MS, Math.ceil(TIMES_AS_LONG * usualMs))
    const passes = await tree.with(mutation, async () => await tree.passes(test, limitMs))
    if (!passes) return ['killed', test]
  }
  return ['survived', mutation.tests.join(', ')]
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      shard: { type: 'string', default: '1/1' },
      jobs: { type: 'string', default: String(availableParallelism()) },
    },
  })
  const mutations = chosen(values.only, values.shard)
  const jobs = Math.min(Number(values.jobs), Math.max(mutations.length, 1))
  if (!(jobs >= 1)) throw new Error(`--jobs N, not ${values.jobs}`)
  const trees = Array.from({ length: jobs }, () => new Tree())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      void Promise.all(trees.map(async (tree) => await tree.stop())).then(() => {
        for (const tree of trees) tree.remove()
        process.exit(130)
      })
    })
  }
  const counts: Record<Outcome, number> = { killed: 0, survived: 0, equivalent: 0, ERROR: 0 }
  const unchanged = new Unchanged()
  const waiting = [...mutations.entries()]
  const tryNext = async (tree: Tree): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [i, mutation] = next
      const began = performance.now()
      const [outcome, why] = await tryOne(tree, unchanged, mutation).catch(
        (error: unknown) => ['ERROR', String(error)] as const,
      )
      counts[outcome]++
      const { file, before, after } = mutation
      const seconds = ((performance.now() - began) / 1000).toFixed(1)
      console.log(`${i + 1}/${mutations.length} ${outcome.padEnd(10)} ${file}: ${before.trim()}`)
      console.log(`      -> ${after.trim()}\n      ${why} (${seconds} s)`)
    }
  }
  try {
    await Promise.all(trees.map(tryNext))
  } finally {
    for (const tree of trees) tree.remove()
  }
  const { killed, survived, equivalent, ERROR } = counts
  console.log(`${killed} killed, ${survived} survived, ${equivalent} equivalent, ${ERROR} errors`)
  return survived + ERROR === 0 && mutations.length > 0 ? 0 : 1
}

process.exitCode = await main()
