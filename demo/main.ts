// npm run demo. With root: a pod, a node and an internet of their own, the eBPF datapath between them. Without: the
// same names against the memory datapath. Ends with 0 when everything it showed was so.

import { canUseLab } from '../test/support/labs/lab.ts'
import { tellKernelStory } from './kernel-story.ts'
import { tellMemoryStory } from './memory-story.ts'
import { Story } from './story.ts'

const colours = process.stdout.isTTY && process.env['NO_COLOR'] === undefined
const story = new Story((text) => process.stdout.write(text), colours)
const started = performance.now()
const reason = process.argv.includes('--memory') ? 'asked for with --memory' : canUseLab()

try {
  if (reason === undefined) await tellKernelStory(story)
  else await tellMemoryStory(story, reason)
} catch (error) {
  story.end(`The demo cannot go on: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}

const seconds = ((performance.now() - started) / 1000).toFixed(0)
if (story.failures > 0) {
  story.end(`${story.failures} of the things shown were not as they should be (${seconds} s).`)
  process.exit(1)
}
story.end(
  `Done in ${seconds} s, nothing left behind. Next: "Protect your own workload" in README.md, or \`npm start\`.`,
)
process.exit(0)
