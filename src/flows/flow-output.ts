// Where lines of flows go: files, standard output, syslog. Each takes lines at its own pace and never makes the caller wait; what
// it has no room for is refused, and the caller counts it.

export type FlowOutputName = 'file' | 'stdout' | 'syslog'

export interface FlowOutput {
  readonly name: FlowOutputName
  /** Octets that it would take now. */
  readonly room: number
  /** Takes whole lines, each with its line feed, of at most `room` octets. */
  write(lines: string): void
  /** Called about once a second: what failed is tried again. */
  tick(): void
  /** Waits for what was taken, for a moment only. */
  stop(): Promise<void>
}
