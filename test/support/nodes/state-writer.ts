// A process that writes numbers, pairs and images until it is killed, and prints the number that it wrote last.

import { writeSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemBootClock, systemClock } from '../../../src/core/clock.ts'
import { openState } from '../../../src/state/state-store.ts'
import { mkPair } from './state-files.ts'

const [, , folder = ''] = process.argv
const { read, store } = openState({
  folder,
  clock: systemClock,
  boot: systemBootClock,
  pairsMax: 100_000,
  onFault: ({ message }) => {
    throw new Error(message)
  },
})
const kept = [...(read.state?.numbers ?? [])]
const first =
  kept.reduce((most, { id }) => Math.max(most, Math.ceil(id / 1_000_000)), 0) * 1_000_000
for (let written = 1; written < 20_000; written++) {
  const number = { id: first + written, labels: [`fqdn:n${written}.test`] }
  kept.push(number)
  store.numbers([number])
  writeSync(1, `${written}\n`)
  store.pair(mkPair(1 + (written % 500), written))
  if (written % 7 === 0) store.until(1 + (written % 500), written)
  if (written % 11 === 0) store.flush()
  if (written % 97 === 0) {
    const image = store.beginImage()
    image?.numbers(kept)
    image?.end()
  }
  if (written % 5 === 0) await nextTurn()
}
