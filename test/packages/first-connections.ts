// The first connections of a protected workload: one that policy allows, a refused name, and an address that no name opened.

import { setTimeout as sleep } from 'node:timers/promises'
import { ALLOWED, REFUSED, SERVER, type PackageSite } from './site.ts'

/** An address of the web server that no answer has. */
const UNASKED = '198.19.255.1'
const LIMIT_MS = 60_000
const REFUSED_STATUS = 'REFUSED'

export interface FirstConnections {
  /** HTTP status of the allowed name. */
  readonly allowed: string
  /** RCODE of the refused name. */
  readonly name: string
  /** HTTP status of the address that no name opened; 000: no connection. */
  readonly address: string
  /** True if policy is in force: the three values are 200, REFUSED and 000. */
  readonly isProtected: boolean
  /** Milliseconds from the call until policy was in force. */
  readonly ms: number
}

/** Repeats the three attempts until policy is in force for all of them, for at most 60 s. */
export async function firstConnections(site: PackageSite): Promise<FirstConnections> {
  const begin = performance.now()
  for (;;) {
    const [allowed, name, address] = await Promise.all([
      fetch(site, ALLOWED, 5),
      rcode(site, REFUSED),
      fetch(site, UNASKED, 1),
    ])
    const isProtected = allowed === '200' && name === REFUSED_STATUS && address === '000'
    const ms = Math.round(performance.now() - begin)
    if (isProtected || ms > LIMIT_MS) return { allowed, name, address, isProtected, ms }
    await sleep(200)
  }
}

/** The HTTP status of http://TARGET/ in the pod. 000: no answer in time. */
export async function fetch(site: PackageSite, target: string, seconds: number): Promise<string> {
  const curl = `exec curl -s -m ${seconds} -o /dev/null -w '%{http_code}' http://${target}/`
  const script = `mount --bind '${site.resolvConf}' /etc/resolv.conf && ${curl}`
  return (await site.pod.host.run('unshare', ['--mount', 'sh', '-c', script])).stdout
}

/** The RCODE for a name in the pod, such as NOERROR; empty without an answer. */
export async function rcode(site: PackageSite, name: string): Promise<string> {
  const args = [`@${SERVER}`, '+tries=1', '+time=2', name]
  const { stdout } = await site.pod.host.run('dig', args)
  return /status: (\w+)/.exec(stdout)?.[1] ?? ''
}
