// A successor that takes everything and then does nothing with it: `false-successor FOLDER`, says `given` when it has it.

import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/core/clock.ts'
import { Taking } from '../../src/daemon/taking.ts'

process.chdir(process.argv[2] ?? '')
const taking = new Taking(loadConfig('namegate.yaml'), systemClock)
const { listeners, connections } = await taking.given()
process.stdout.write(`given ${listeners.length} listeners, ${connections.length} connections\n`)
await new Promise(() => undefined)
