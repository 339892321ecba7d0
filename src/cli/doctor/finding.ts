// A Finding is the result of one check of `namegate doctor`. A check gets an Examined, changes nothing, and returns one Finding or several.

import type { Status } from '../../client/api-types.ts'
import type { Config } from '../../config/config.ts'
import type { PartOf } from '../fields.ts'
import type { Machine } from './machine.ts'

/** `problem`: namegate does not work, or does not do what the configuration says. `unchecked`: the check could not find out. */
export type Result = 'ok' | 'warning' | 'problem' | 'unchecked'

export interface Finding {
  /** A word or two, the same for every result of the check. */
  readonly check: string
  readonly result: Result
  /** What was found, on one line. */
  readonly found: string
  /** A command, or what a person can do. Undefined if nothing is to do. */
  readonly remedy?: string | undefined
}

/** What a check can look at. */
export interface Examined {
  readonly machine: Machine
  /** The built-in defaults if no file was found, or if the file has faults. */
  readonly config: Config
  /** The reply of the running daemon. Undefined if none answers. */
  readonly status: PartOf<Status> | undefined
}

export type Check = (examined: Examined) => readonly Finding[] | Promise<readonly Finding[]>

/** Makes findings of one check. */
export class Findings {
  readonly check: string

  constructor(check: string) {
    this.check = check
  }

  ok(found: string): Finding {
    return { check: this.check, result: 'ok', found }
  }

  warning(found: string, remedy?: string): Finding {
    return { check: this.check, result: 'warning', found, remedy }
  }

  problem(found: string, remedy?: string): Finding {
    return { check: this.check, result: 'problem', found, remedy }
  }

  unchecked(found: string, remedy?: string): Finding {
    return { check: this.check, result: 'unchecked', found, remedy }
  }
}

/** True if some listener needs rules that bring queries to it. */
export function isTransparent({ listeners }: Config): boolean {
  return listeners.some(({ mode }) => mode !== 'explicit')
}
