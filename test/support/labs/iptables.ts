// The text of `intercept show --iptables` put in and taken out as a person would: restored for both families, and its
// comments run as the commands that they are.

import assert from 'node:assert/strict'
import { outputIn, runIn } from './intercept-lab.ts'
import type { Host } from './lab.ts'
import type { Namegate } from './lab-namegate.ts'

const RESTORE = ['iptables-restore', 'ip6tables-restore']

/** Loads the text in a host; gives it. */
export async function loadText(namegate: Namegate, host: Host): Promise<string> {
  const { code, stdout, stderr } = await namegate.run('intercept', 'show', '--iptables')
  assert.equal(code, 0, stderr)
  for (const tool of RESTORE) {
    const loaded = runIn(host, [tool, '--noflush'], stdout)
    assert.equal(loaded.code, 0, loaded.stderr)
  }
  for (const [, command = ''] of stdout.matchAll(/^# (ip .*)$/gm))
    outputIn(host, ...command.split(' '))
  return stdout
}

/** Runs the commands that the text names for that, and lets go of the flows. */
export function unloadText(text: string, host: Host): void {
  for (const [, line = ''] of text.matchAll(/^# {3}(ip.*)$/gm)) {
    for (const command of line.split('; ')) {
      outputIn(host, ...command.split(' '))
      if (!command.startsWith('iptables')) continue
      outputIn(host, ...command.replace('iptables', 'ip6tables').split(' '))
    }
  }
}
