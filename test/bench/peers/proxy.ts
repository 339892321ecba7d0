// The interface of a proxy for the harness: it starts again for every turn, listens at one address on port 53, and stops.

import type { LoadName, SubjectName } from './subjects.ts'

export interface Running {
  /** 0 without a process: the load asks the upstream itself. */
  readonly pid: number
  /** The server that the load asks. */
  readonly server: string
  /** Notes after a turn, e.g. how many answers were released as exact. */
  note(): Promise<string>
  stop(): Promise<void>
}

export interface Subject {
  readonly name: SubjectName
  /** The program and its settings, in one line. */
  readonly settings: string
  start(load: LoadName): Promise<Running>
}

/** A subject that cannot be measured here, and the reason. */
export interface LeftOut {
  readonly name: SubjectName
  readonly reason: string
}
