// The state folder of a config: read at the start, and written from then on.

import type { Config } from './config/config.ts'
import type { KeptState } from './control/keeping.ts'
import { systemBootClock, systemClock } from './core/clock.ts'
import { openState } from './state/open-state.ts'
import type { StateStore } from './state/state-store.ts'
import type { Log } from './telemetry/log.ts'

export interface OpenedKeptState {
  readonly kept: KeptState
  readonly store: StateStore
}

const SECOND_MS = 1000

/** Throws nothing: a folder that cannot be read or written is told, and the daemon goes on with what the kernel has. */
export function openKeptState({ state, limits }: Config, log: Log): OpenedKeptState {
  const { read, store } = openState({
    folder: state.directory,
    clock: systemClock,
    boot: systemBootClock,
    pairsMax: limits.pairs,
    onFault: ({ cause, message }) => {
      log.warn({ cause, fault: message }, 'the state folder refuses what it is given')
    },
  })
  for (const { file, offset, reason, isNormal } of read.passedOver) {
    const fields = { file, offset, reason }
    if (isNormal) log.debug(fields, 'the end of a journal is incomplete, as after a kill')
    else log.warn(fields, 'state passed over')
  }
  const bootAtZero = systemBootClock.seconds() - systemClock.now() / SECOND_MS
  return { kept: { saved: read.state, sink: store, bootAtZero }, store }
}
