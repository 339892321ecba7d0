// The only file that the package exports. `createGate` starts a namegate inside another program (docs/library.md), and every public type
// is defined here or exported from here.

import type { Gate, GateOptions } from './library/gate.ts'
import { openGate } from './library/open-gate.ts'

export { InvalidInputError, UnavailableError, type Fault, type Position } from './core/errors.ts'
export type * from './library/config-keys.ts'
export type * from './library/gate.ts'
export type * from './library/policy-document.ts'

/**
 * Starts a gate. The gate takes queries at `Gate.addresses`, and the datapath of the configuration enforces policy. The default datapath
 * is `memory`, which needs no root. One process can run several gates. Rejects with InvalidInputError, whose `faults` name the path of
 * each wrong key, or with UnavailableError, which names the remedy.
 */
export async function createGate(options: GateOptions = {}): Promise<Gate> {
  return await openGate(options)
}
