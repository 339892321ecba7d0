// matchSockets assigns passed sockets to the listeners of the configuration, by address and port. A socket must suit the
// listener's mode. A socket without a listener is an error, because its packets would be lost without a trace. A listener
// without a passed socket binds its own.

import type { ListenerConfig, ListenerMode } from '../../config/config.ts'
import { placesOfListener } from './listener-places.ts'
import { UnavailableError } from '../../core/errors.ts'
import type { Family } from '../../core/ip.ts'
import { describeSocket, type PassedSocket } from '../../native/passed-socket.ts'
import type { GivenSockets } from './listeners.ts'

interface Place {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
  readonly mode: ListenerMode
}

/** Returns the sockets of each listener that has passed sockets. Throws UnavailableError, which names the bad socket and the remedy. */
export function matchSockets(
  passed: readonly PassedSocket[],
  listeners: readonly ListenerConfig[],
): readonly GivenSockets[] {
  const places = listeners.flatMap(placesOf)
  const left = new Set(passed)
  const given: GivenSockets[] = []
  for (const place of places) {
    const [udp, ...moreUdp] = passed.filter((each) => fits(each, place, 'UDP'))
    const [tcp, ...moreTcp] = passed.filter((each) => fits(each, place, 'TCP'))
    if (udp === undefined && tcp === undefined) continue
    const twice = moreUdp[0] ?? moreTcp[0]
    if (twice !== undefined) throw fault(twice, 'it was passed more than once')
    for (const each of [udp, tcp]) {
      if (each === undefined) continue
      mustSuit(each, place.mode)
      left.delete(each)
    }
    const { family, octets, port } = place
    given.push({ family, octets, port, udp: udp?.descriptor, tcp: tcp?.descriptor })
  }
  for (const each of left) {
    throw fault(each, 'no listener of the config has this address and port: change one of them')
  }
  return given
}

function placesOf(listener: ListenerConfig): readonly Place[] {
  const { port, mode } = listener
  return placesOfListener(listener).map((place) => ({ ...place, port, mode }))
}

function fits(socket: PassedSocket, place: Place, transport: 'UDP' | 'TCP'): boolean {
  return (
    socket.transport === transport &&
    socket.family === place.family &&
    socket.port === place.port &&
    socket.octets.every((octet, i) => octet === place.octets[i])
  )
}

function mustSuit(socket: PassedSocket, mode: ListenerMode): void {
  if (socket.mixed) {
    throw fault(socket, 'it takes IPv4 as well: set BindIPv6Only=ipv6-only in the socket unit')
  }
  if (mode === 'tproxy' && !socket.transparent) {
    throw fault(socket, 'it is not transparent, as mode tproxy needs: set Transparent=yes')
  }
}

function fault(socket: PassedSocket, reason: string): UnavailableError {
  return new UnavailableError(`Cannot take passed socket ${describeSocket(socket)}: ${reason}`)
}
