// Which local answer a query gets that isn't forwarded (docs/spec/semantics 4, table), and what its flow calls the reason.

import { LOCAL, type LocalAnswer } from '../../dns/codes.ts'
import type { QueryStatus } from '../../dns/query.ts'
import type { ForwardResult } from '../upstream/upstream.ts'

type Denials = Readonly<Record<'refused' | 'nxdomain' | 'nodata' | 'drop', LocalAnswer | undefined>>

/** `dns.deny-response`: what is said of a name that policy denies; undefined: nothing. */
export const DENIED: Denials = {
  refused: LOCAL.deniedRefused,
  nxdomain: LOCAL.deniedNxdomain,
  nodata: LOCAL.deniedNodata,
  drop: undefined,
}

/** The same of any name while sources are silent and `sources.then` is deny. */
export const CLOSED: Denials = {
  refused: LOCAL.closedRefused,
  nxdomain: LOCAL.closedNxdomain,
  nodata: LOCAL.closedNodata,
  drop: undefined,
}

/** The bound that a query was refused at, as its key under `limits`. */
export const BOUNDS: Readonly<Record<ForwardResult, string>> = {
  forwarded: '',
  full: 'queries-in-flight',
  'client-full': 'queries-in-flight-per-client',
}

/** What a query gets that can't be read, or that asks for what we don't do. */
export function localAnswerTo(status: Exclude<QueryStatus, 'silent'>): LocalAnswer {
  switch (status) {
    case 'notimp':
      return LOCAL.notImplemented
    case 'badvers':
      return LOCAL.badVersion
    case 'formerr':
    case 'ok':
      return LOCAL.queryMalformed
  }
}
