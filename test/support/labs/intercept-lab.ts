// Interception in a lab: tools that work inside a host, and a host's rules, routing and settings before and after.

import { spawnSync } from 'node:child_process'
import type { RunTool } from '../../../src/intercept/tools.ts'
import type { Host } from './lab.ts'

/** nft and ip inside a host. */
export function toolsIn(host: Host): RunTool {
  return async (tool, args, input = '') =>
    await Promise.resolve(runIn(host, [tool, ...args], input))
}

export function runIn(
  host: Host,
  command: readonly string[],
  input = '',
): { readonly code: number; readonly stdout: string; readonly stderr: string } {
  const net = `--net=/run/netns/${host.namespace}`
  const { status, stdout, stderr } = spawnSync('nsenter', [net, '--', ...command], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  return { code: status ?? -1, stdout, stderr }
}

/** The output of a command inside a host. Throws if the command fails. */
export function outputIn(host: Host, ...command: readonly string[]): string {
  const { code, stdout, stderr } = runIn(host, command)
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
  return stdout
}

/** Rules and routing of a host, as lines. */
export function snapshot(host: Host): readonly string[] {
  return [
    outputIn(host, 'nft', 'list', 'ruleset'),
    outputIn(host, 'ip', 'rule'),
    outputIn(host, 'ip', '-6', 'rule'),
    outputIn(host, 'ip', 'route', 'show', 'table', 'all'),
    outputIn(host, 'ip', '-6', 'route', 'show', 'table', 'all'),
  ].flatMap((text) => text.split('\n'))
}

/** The network settings of a host as lines, without those that change by themselves. */
export function settings(host: Host): readonly string[] {
  const lines = runIn(host, ['sysctl', '-a', '-r', '^net\\.']).stdout.split('\n')
  return lines.filter((line) => !/nf_conntrack_count|\.stable_secret|random_/.test(line))
}
