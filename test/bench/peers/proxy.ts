// What the harness wants of a proxy: started anew for every turn, asked at one address, port 53, stopped.

import type { LoadName, SubjectName } from './subjects.ts'

export interface Running {
  /** 0: there is no process, the upstream is asked itself. */
  readonly pid: number
  /** What the load asks. */
  readonly server: string
  /** What is worth knowing after a turn, e.g. how many answers were released as exact. */
  note(): Promise<string>
  stop(): Promise<void>
}

export interface Subject {
  readonly name: SubjectName
  /** The program and how it is set, in one line. */
  readonly settings: string
  start(load: LoadName): Promise<Running>
}

/** A subject that can't be measured here, and why. */
export interface LeftOut {
  readonly name: SubjectName
  readonly reason: string
}
