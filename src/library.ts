// `import { createGate } from 'namegate'`: a gate inside another program (docs/library.md). The only file that
// the package exports; everything public is here or named here.

import type { Gate, GateOptions } from './library/gate.ts'
import { openGate } from './library/open-gate.ts'

export { InvalidInputError, UnavailableError, type Fault, type Position } from './core/errors.ts'
export type * from './library/config-keys.ts'
export type * from './library/gate.ts'
export type * from './library/policy-document.ts'

/**
 * Starts a gate: it takes queries at `Gate.addresses` and enforces by the datapath of the configuration, with
 * `memory` (the default) without root. Several may run in one process. Rejects with InvalidInputError, whose
 * `faults` name the path of each key that is wrong, or with UnavailableError that names the remedy.
 */
export async function createGate(options: GateOptions = {}): Promise<Gate> {
  return await openGate(options)
}
