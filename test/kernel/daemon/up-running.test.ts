// A workload that already runs and asks while `namegate up` starts.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { ALLOWED, OTHER, UpLab } from '../../support/labs/up-lab.ts'

const LIMIT_MS = 90_000
/** Asks again and again, each time from another port, and prints what gets no answer. Ends when it finds the file of its argument. */
const ASKS = `
n=0
until [ -e "$1" ]; do
  n=$((n + 1))
  dig @${DNS_4} +tries=1 +time=3 "$2" | grep -q 'status: ' || echo "query $n is lost"
done
echo "asked $n times"
`

describe(
  'a workload that asks while namegate up starts',
  { skip: canUseNamegate() ?? false },
  () => {
    let lab: UpLab

    before(async () => {
      lab = new UpLab(1)
      await lab.serve()
    })
    after(async () => await lab.close())

    for (const name of [ALLOWED, OTHER]) {
      it(`loses no query: ${name}`, async () => {
        const { host } = lab.pod(0)
        const end = `${lab.folder}/end-${name}`
        const asking = host.start('sh', ['-c', ASKS, 'sh', end, name])
        const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
        await run.protects()
        await lab.node.run('touch', [end])
        const asked = await asking.ended(LIMIT_MS)
        const ended = await run.end()
        assert.match(asked?.stdout ?? '', /^asked \d+ times\n$/)
        assert.doesNotMatch(ended?.stdout ?? '', /reached no listener/)
      })
    }
  },
)
