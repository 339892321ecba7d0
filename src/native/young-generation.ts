// This file sets the size of the young generation of the garbage collector (docs/decisions/0004). Node starts with room for 16
// MiB. A daemon keeps the young generation at its first size of 1 MiB, which saves memory and keeps pauses short. Code that reads
// much data that stays lets the young generation grow, because the collector copies each lasting object twice. With 1 MiB,
// collecting would then take as long as reading. Only the main thread collects such a small generation. Other threads would save
// no time, and where CPUs are short, waiting for them takes longer than the work itself.

import { setFlagsFromString } from 'node:v8'

/**
 * Keeps the young generation at its size from this call on. No Node option can do so at the start, because V8 treats a start
 * factor below 2 as 2.
 */
export function keepYoungSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--no-parallel-scavenge')
}

/** Lets the young generation grow from this call on, where many objects stay, up to the size with which Node started. */
export function letYoungGrow(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
  setFlagsFromString('--parallel-scavenge')
}
