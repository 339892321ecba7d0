// Installs and removes the text of `intercept show --iptables` by hand: restores it for both families, and runs the commands in its
// comments.

import assert from 'node:assert/strict'
import { outputIn, runIn } from './intercept-lab.ts'
import type { Host } from './lab.ts'
import type { Namegate } from './lab-namegate.ts'

const RESTORE = ['iptables-restore', 'ip6tables-restore']

/** Loads the text in a host, and returns it. */
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

/** Runs the removal commands in the text, and closes the connection table. */
export function unloadText(text: string, host: Host): void {
  for (const [, line = ''] of text.matchAll(/^# {3}(ip.*)$/gm)) {
    for (const command of line.split('; ')) {
      outputIn(host, ...command.split(' '))
      if (!command.startsWith('iptables')) continue
      outputIn(host, ...command.replace('iptables', 'ip6tables').split(' '))
    }
  }
}
