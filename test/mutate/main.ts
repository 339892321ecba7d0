// npm run mutate [-- --only PART... --shard I/N]
//   Changes single lines of security-relevant files, one at a time, in a copy of the tree, and runs the tests that
//   should notice. Prints each as killed, survived or equivalent. Exit 1 when one survived that the table does not
//   explain, or when a row of the table does not fit the tree any more. As root, or tests in namespaces are left out.
//   --only PART   only rows whose file or line contains the text; several are possible
//   --shard I/N   only every Nth row from the Ith on, for several runs beside each other

import { parseArgs } from 'node:util'
import type { Mutation } from './mutation.ts'
import { MUTATIONS } from './table.ts'
import { Tree } from './tree.ts'

type Outcome = 'killed' | 'survived' | 'equivalent' | 'ERROR'

function chosen(only: readonly string[], shard: string): readonly Mutation[] {
  const [index = 0, count = 0] = shard.split('/').map(Number)
  if (!(count >= 1 && index >= 1 && index <= count)) throw new Error(`--shard I/N, not ${shard}`)
  return MUTATIONS.filter(
    ({ file, before }) =>
      only.length === 0 || only.some((part) => file.includes(part) || before.includes(part)),
  ).filter((_, i) => i % count === index - 1)
}

/** What became of a mutation, and by which test or why. */
async function tryOne(tree: Tree, mutation: Mutation): Promise<readonly [Outcome, string]> {
  if (mutation.equivalent !== undefined) {
    await tree.with(mutation, async () => await Promise.resolve())
    return ['equivalent', mutation.equivalent]
  }
  const noticed = await tree.with(mutation, async () => {
    for (const test of mutation.tests) if (!(await tree.passes(test))) return test
    return undefined
  })
  if (noticed === undefined) return ['survived', mutation.tests.join(', ')]
  if (await tree.isSound(noticed)) return ['killed', noticed]
  return ['ERROR', `${noticed} fails where nothing is changed`]
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      shard: { type: 'string', default: '1/1' },
    },
  })
  const mutations = chosen(values.only, values.shard)
  const tree = new Tree()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      void tree.stop().then(() => {
        tree.remove()
        process.exit(130)
      })
    })
  }
  const counts: Record<Outcome, number> = { killed: 0, survived: 0, equivalent: 0, ERROR: 0 }
  try {
    for (const [i, mutation] of mutations.entries()) {
      const { file, before, after } = mutation
      const [outcome, why] = await tryOne(tree, mutation).catch(
        (error: unknown) => ['ERROR', String(error)] as const,
      )
      counts[outcome]++
      console.log(`${i + 1}/${mutations.length} ${outcome.padEnd(10)} ${file}: ${before.trim()}`)
      console.log(`      -> ${after.trim()}\n      ${why}`)
    }
  } finally {
    tree.remove()
  }
  const { killed, survived, equivalent, ERROR } = counts
  console.log(`${killed} killed, ${survived} survived, ${equivalent} equivalent, ${ERROR} errors`)
  return survived + ERROR === 0 && mutations.length > 0 ? 0 : 1
}

process.exitCode = await main()
