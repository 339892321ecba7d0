// `noEndpoint` says that no endpoint has a name, and which name was probably meant.

import { nearest } from '../core/did-you-mean.ts'
import type { AdminState } from './state.ts'

export function noEndpoint(
  { endpoints: { registry } }: Pick<AdminState, 'endpoints'>,
  name: string,
): string {
  const meant = nearest(
    name,
    [...registry].map((endpoint) => endpoint.name),
  )
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return `no endpoint is named ${JSON.stringify(name)}${hint}`
}
