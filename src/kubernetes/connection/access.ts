// ApiAccess says where the API server is, and what proves who namegate is and who the server is. A kubeconfig or the service account of
// the pod gives it (kubeconfig.ts, service-account.ts).

import type { Fault } from '../../core/errors.ts'

/** A token, certificate or key. A file is read again when it changes. */
export type Material =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'text'; readonly text: string }

export interface ApiAccess {
  /** Scheme, host and port, such as `https://10.96.0.1:443`. */
  readonly origin: string
  /** The path of the server's address, without a slash at its end. Empty in most clusters. */
  readonly prefix: string
  /** The name that the server's certificate must have, if that is not the host. */
  readonly serverName: string | undefined
  /** Undefined: the authorities of Node.js. */
  readonly authority: Material | undefined
  /** True: the server's certificate is not checked. */
  readonly isInsecure: boolean
  readonly token: Material | undefined
  readonly client: { readonly certificate: Material; readonly key: Material } | undefined
}

export type AccessResult =
  | { readonly kind: 'access'; readonly access: ApiAccess }
  | { readonly kind: 'faults'; readonly faults: readonly Fault[] }

/** Splits the address of a server. Returns undefined if it is no https address. */
export function splitServer(
  text: string,
): { readonly origin: string; readonly prefix: string } | undefined {
  if (!/^https:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname } = new URL(text)
  return { origin, prefix: pathname.replace(/\/+$/, '') }
}
