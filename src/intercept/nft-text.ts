// Words and blocks of an nftables script that the rules of TPROXY and of REDIRECT share. The functions are pure.

import type { Family } from '../core/ip.ts'
import type { Target } from './plan.ts'

export const COUNTERS = ['taken', 'forged', 'unheard', 'own', 'guarded', 'bridged'] as const
export type Counter = (typeof COUNTERS)[number]

export const NFPROTO = { 4: 'ipv4', 6: 'ipv6' } as const
export const HEADER = { 4: 'ip', 6: 'ip6' } as const
export const NOT_DNS = ['meta l4proto != { tcp, udp } accept', 'th dport != 53 accept']

export function chain(name: string, hook: string | undefined, rules: readonly string[]): string[] {
  const type = hook === undefined ? [] : [`  type ${hook}; policy accept;`]
  return [`chain ${name} {`, ...type, ...rules.map((rule) => `  ${rule}`), '}']
}

export function set(
  name: string,
  type: string,
  more: readonly string[],
  elements: string,
): string[] {
  const filled = elements === '' ? [] : [`  elements = { ${elements} }`]
  return [`set ${name} {`, `  type ${type}`, ...more.map((line) => `  ${line}`), ...filled, '}']
}

export function counters(...names: readonly Counter[]): readonly string[] {
  return names.flatMap((name) => [`counter ${name} {`, '}'])
}

export function socketOf(family: Family, { address, port }: Target): string {
  if (address === undefined) return `:${port}`
  return family === 4 ? `${address}:${port}` : `[${address}]:${port}`
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ')
}

export function hex(mark: number): string {
  return `0x${mark.toString(16)}`
}
