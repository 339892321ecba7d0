// Reads queries for the tests of QueryView, and makes a few common ones.

import { QueryView, type QueryStatus } from '../../src/dns/query.ts'
import { A, concat, mkQuery, opt, option, type MkMessage, type MkOpt } from './messages.ts'

/** Reads the message out of a slab. The octets around it would complete a truncated record. */
export function readQuery(message: Uint8Array): { status: QueryStatus; view: QueryView } {
  const view = new QueryView()
  const slab = concat(Uint8Array.of(1, 2, 3), message, Uint8Array.of(0, 0, 41, 0, 0))
  return { status: view.read(slab, 3, message.length), view }
}

export const cookie = (length: number) => option(10, new Uint8Array(length))
export const withOpt = (change: MkOpt = {}, more: MkMessage = {}) =>
  mkQuery('www.example', A, { additionals: [opt(change)], ...more })
export const raw = (...octets: number[]) => ({ raw: Uint8Array.from(octets) })
