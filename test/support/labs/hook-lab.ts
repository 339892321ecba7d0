// Shared parts of the tests of hooks: two applications with a name each, commands in a host, and a timed wait.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from './lab.ts'
import type { Output } from './lab-process.ts'

export const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
export const JOB = { name: 'www.job.test', address4: '198.18.41.1' }
export const DENIED = '198.18.66.6'
export const ZONES = {
  names: { [SHOP.name]: [SHOP.address4, SHOP.address6], [JOB.name]: [JOB.address4] },
}

export function mkPolicy(app: string, egress: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${app} }
spec:
  endpointSelector: { matchLabels: { app: ${app} } }
  egress: [${egress}]
`
}

/** A policy that lets an application ask and reach the names under a suffix, and nothing else. */
export function mkNames(app: string, suffix: string): string {
  const dns = `toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*.${suffix}' }] } }]`
  return mkPolicy(app, `{ ${dns} }, { toFQDNs: [{ matchPattern: '*.${suffix}' }] }`)
}

export async function curl(host: Host, url: string, ...args: readonly string[]): Promise<boolean> {
  const { code } = await host.run('curl', ['-sS', '-o', '/dev/null', '-m', '1.5', ...args, url])
  return code === 0
}

export async function dig(host: Host, ...args: readonly string[]): Promise<Output> {
  return await host.run('dig', ['+tries=1', '+time=1', ...args])
}

/** Milliseconds from now until `check` is true. */
export async function elapsedUntil(check: () => boolean): Promise<number> {
  const began = performance.now()
  while (!check()) {
    if (performance.now() - began > 15_000) throw new Error('not in 15 s')
    await sleep(1)
  }
  return performance.now() - began
}
