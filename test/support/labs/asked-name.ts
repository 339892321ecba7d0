// The name that tests of interception ask, the answers of namegate's upstream and of another resolver, and dig from a host of a lab.

import assert from 'node:assert/strict'
import type { Host } from './lab.ts'

export const NAME = 'www.shop.test'
export const DATA = '198.18.40.1'
export const OTHER_DATA = '198.18.99.9'
export const ZONES = { names: { [NAME]: [DATA, '2001:db8:80::1'] } }
/** Zones of a resolver that namegate does not ask. */
export const OTHER_ZONES = { names: { [NAME]: [OTHER_DATA] } }
/** Addresses that no host has. */
export const NOWHERE = ['10.96.0.10', 'fd00:96::10'] as const
/** Options of dig. */
export const TRANSPORTS = ['+notcp', '+tcp'] as const

/** How long dig waits if an answer must come. A busy machine can take seconds. */
const PATIENCE = '+time=10'

/** The answer's data. Without data its status, and without an answer `no answer`. */
export async function dig(host: Host, server: string, ...more: readonly string[]): Promise<string> {
  const how = ['+tries=1', '+time=2', '+noall', '+comments', '+answer']
  const { stdout } = await host.run('dig', [...how, `@${server}`, ...more, NAME])
  const status = /status: (\w+)/.exec(stdout)?.[1] ?? 'no answer'
  return / A (\S+)/.exec(stdout.replaceAll(/\s+/g, ' '))?.[1] ?? status
}

/** Asks every server over UDP and TCP, at once. */
export async function askAll(
  host: Host,
  servers: readonly string[],
  ...more: readonly string[]
): Promise<readonly string[]> {
  return await Promise.all(
    questionsTo(servers).map(async ([server, each]) => await dig(host, server, each, ...more)),
  )
}

/** Asserts that every server answers with `data`, over UDP and TCP. */
export async function assertAnswers(
  host: Host,
  servers: readonly string[],
  data: string,
  ...more: readonly string[]
): Promise<void> {
  const answers = await askAll(host, servers, PATIENCE, ...more)
  const found = questionsTo(servers).map((asked, i) => `${asked.join(' ')}: ${answers[i]}`)
  assert.deepEqual(
    found.filter((each) => !each.endsWith(`: ${data}`)),
    [],
    `not all are ${data}`,
  )
}

function questionsTo(servers: readonly string[]): readonly (readonly [string, string])[] {
  return servers.flatMap((server) => TRANSPORTS.map((each) => [server, each] as const))
}
