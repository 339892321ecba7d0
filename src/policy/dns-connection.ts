// Tells connections to DNS servers from others. Queries go through namegate, so no suggestion allows such a connection: it would be a way
// around the names that policy allows. A query is dropped instead of intercepted if it was sent before interception was in force.

const DNS_PORT = 53
const PROTOCOLS: readonly string[] = ['TCP', 'UDP']

/** What to do instead of allowing such a connection, as a sentence without a full stop. */
export const ASK_AGAIN =
  'DNS goes through namegate, so ask again; allowing port 53 would be a way around names'

/** True for a connection to port 53 over UDP or TCP. `protocol` is a word such as `UDP`, in any case. */
export function isDnsConnection(protocol: string, port: number): boolean {
  return port === DNS_PORT && PROTOCOLS.includes(protocol.toUpperCase())
}
