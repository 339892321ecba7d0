// Runs the command of a container like a runtime: with its own environment only, its capabilities (by capsh), and its mounts in a mount
// namespace of its own.

import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { outputIn } from './intercept-lab.ts'
import type { Host } from './lab.ts'

export interface ContainerForm {
  /** The program in place of the image's, and its arguments. */
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** As a manifest writes them: `NET_ADMIN`. */
  readonly capabilities: readonly string[]
  /** Shell commands that mount. */
  readonly mounts: string
}

/** The reason why containers cannot be made here, or undefined. */
export function canUseContainers(): string | undefined {
  try {
    execFileSync('capsh', ['--supports=cap_net_admin'])
    return undefined
  } catch {
    return 'capsh is missing: apt-get install libcap2-bin'
  }
}

export function containerCommand(
  host: Host,
  { command, environment, capabilities, mounts }: ContainerForm,
): readonly [string, readonly string[]] {
  const kept = capabilities.map((each) => `cap_${each.toLowerCase()}`)
  const drop = boundingSet(host).filter((each) => !kept.includes(each))
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const path = `PATH=${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`
  return [
    'unshare',
    [
      ...['--mount', 'sh', '-c', `${mounts}\nexec "$@"`, 'mounts'],
      ...['env', '-i', path, ...variables],
      ...['capsh', '--no-new-privs', `--drop=${drop.join(',')}`, '--', '-c', 'exec "$0" "$@"'],
      ...command,
    ],
  ]
}

/** Names of all capabilities that a process can have here. */
function boundingSet(host: Host): readonly string[] {
  const text = outputIn(host, 'capsh', '--print')
  return (/^Bounding set =(.*)$/m.exec(text)?.[1] ?? '').split(',').filter(Boolean)
}
