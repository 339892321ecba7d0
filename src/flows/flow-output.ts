// The port to an output of flows: files, standard output, syslog. An output takes lines at its own pace and never blocks. Lines
// that it has no room for are refused, and the caller counts them.

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
