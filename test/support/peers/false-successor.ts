// A successor that receives everything and then does nothing with it: `false-successor FOLDER` prints `given` once it has received all.
// `false-successor FOLDER give-up` then gives up, prints whether it could still continue, and stays.
// `false-successor FOLDER go` continues, and prints whether the source had closed its entrance by then.

import { existsSync } from 'node:fs'
import { loadConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { connectPathOf } from '../../../src/handover/connect.ts'
import { Successor } from '../../../src/handover/successor.ts'

const [folder = '', then] = process.argv.slice(2)
process.chdir(folder)
const config = loadConfig('namegate.yaml')
const successor = new Successor(config, systemClock)
const { listeners, connections } = await successor.given()
process.stdout.write(`given ${listeners.length} listeners, ${connections.length} connections\n`)
if (then === 'give-up') {
  successor.giveUp('a test ended the attempt')
  await successor.go().catch((error: unknown) => process.stdout.write(`${String(error)}\n`))
}
if (then === 'go') {
  await successor.go()
  const isOpen = existsSync(connectPathOf(config.admin.socket))
  process.stdout.write(`told to go on, the way in is ${isOpen ? 'open' : 'shut'}\n`)
}
await new Promise(() => undefined)
