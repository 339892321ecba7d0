// The young generation of this process's garbage collector (docs/decisions/0004). Node is started with room for 16 MiB, and a
// daemon keeps it at the 1 MiB that it begins with: small, and short pauses. Only who reads much that stays lets it grow, since
// each object that stays is copied twice, and with 1 MiB collecting takes as long as reading. So little is collected by the main
// thread alone: others' help is worth nothing, and where CPUs are short it waits for them longer than the work takes.

import { setFlagsFromString } from 'node:v8'

/** From now on it stays as large as it is. Nothing at the start of Node can say so: V8 takes less than 2 for 2 there. */
export function keepYoungSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--no-parallel-scavenge')
}

/** From now on it grows where much stays, as far as Node was started for. */
export function letYoungGrow(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
  setFlagsFromString('--parallel-scavenge')
}
