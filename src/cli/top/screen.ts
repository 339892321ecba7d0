// Shows a text that changes, at one place of a terminal. The terminal's former content comes back at the end. The control sequences are those
// of ECMA-48 and xterm: the other screen, the cursor, and erasing.

import type { CommandOutput, Terminal } from '../command.ts'
import { repeat } from '../repeat.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const END_OF_LINE = '\u001b[K'
const BELOW = '\u001b[J'

/** Shows the lines that `draw` returns, every `intervalMs`, until the user ends the command. Rejects when `draw` rejects. */
export async function showOnScreen(
  output: CommandOutput,
  terminal: Terminal,
  intervalMs: number,
  draw: () => Promise<readonly string[]>,
): Promise<void> {
  let isEntered = false
  try {
    await repeat(terminal, intervalMs, async () => {
      const lines = (await draw()).slice(0, Math.max(1, terminal.rows - 1))
      if (!isEntered) output.stdout(ENTER)
      isEntered = true
      output.stdout(HOME + lines.map((line) => `${line}${END_OF_LINE}\n`).join('') + BELOW)
    })
  } finally {
    if (isEntered) output.stdout(LEAVE)
  }
}
