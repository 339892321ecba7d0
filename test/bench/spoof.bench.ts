// A blind spoofer for a minute: 50,000 forged answers a second from the true server's address with the right question, and 10 outstanding
// queries at all times; 0.007 of 3,000,000 are expected to hit. Then the control, which knows the true port and id.
//   node --import tsx test/bench/spoof.bench.ts [SECONDS]

import { SpoofLab } from '../support/labs/spoof-lab.ts'

const RATE = 50_000
const SECONDS = Number(process.argv[2] ?? 60)

const lab = new SpoofLab()
try {
  await lab.start()
  const flood = await lab.attack({ kind: 'flood', rate: RATE }, SECONDS)
  const know = await lab.attack({ kind: 'know' }, 2)
  console.table({ guessing: flood, 'knowing port and id': know })
} finally {
  await lab.close()
}
