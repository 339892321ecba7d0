// Asks for many names at once, by a process on a host of a lab (burst-asker.ts).

import { fileURLToPath } from 'node:url'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { programArgs } from '../labs/program.ts'

const ASKER = fileURLToPath(new URL('burst-asker.ts', import.meta.url))

/** Asks `server` for `n0.SUFFIX` and on. Prints `answered COUNT` when all have their answers. */
export function startBurst(host: Host, server: string, suffix: string, count: number): LabProcess {
  return host.start(process.execPath, programArgs(ASKER, server, suffix, String(count)))
}
