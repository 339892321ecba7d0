// Defines the section of the configuration file about the web page over TCP, and the fields of Config that its keys become. The page on
// the admin socket needs no keys.

import { z } from 'zod'
import { formatAddress, isLoopback } from '../core/ip.ts'
import {
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../core/socket-address.ts'
import { RELATIVE } from './schema-policy.ts'
import { faultAt, flag, section, words } from './schema-values.ts'

const DEFAULT_ADDRESS = '127.0.0.1:9466'

/** What systemd takes as the name of a credential. */
const CREDENTIAL = /^(?!credential:)|^credential:(?!\.{1,2}$)[ -.0-9;-~]{1,255}$/
const CREDENTIAL_FORM =
  'a path or credential:NAME, whose name has 1 to 255 ASCII characters, but no slash, colon or control character'

/** A file that the configuration names by its path, or as a credential (credentials.ts). */
function file(what: string) {
  return words('path')
    .regex(CREDENTIAL, { error: CREDENTIAL_FORM })
    .meta({ description: `${what} (path, ${RELATIVE}, or credential:NAME).` })
}

const address = words(SOCKET_ADDRESS_FORM)
  .transform((text, context): SocketAddress => {
    const parsed = parseSocketAddress(text)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: SOCKET_ADDRESS_FORM })
    return z.NEVER
  })
  .prefault(DEFAULT_ADDRESS)
  .meta({
    description: `address and port to listen on (${SOCKET_ADDRESS_FORM}; default ${DEFAULT_ADDRESS}).`,
  })

const tls = section(
  'Certificate for TLS. An address that is not loopback needs it',
  {
    certificate: file('certificate chain in PEM form'),
    key: file('private key in PEM form'),
    'client-ca': file(
      'certificate authorities in PEM form; a client whose certificate they signed needs no token',
    ).optional(),
  },
  (keys) => ({ certificate: keys.certificate, key: keys.key, clientCa: keys['client-ca'] }),
)

/** The page over TCP. Left out: the page is served on the admin socket only. */
export const page = section(
  'The web page over TCP. Without this section only the admin socket serves the page',
  {
    address,
    'token-file': file(
      'file with the token that a browser must show, at least 16 characters; other users must not be able to read the file',
    ).optional(),
    tls: tls.optional(),
    write: flag({ default: false, doc: 'true lets the page turn audit of endpoints on and off' }),
  },
  (keys, context) => {
    const { address: at, tls: secure, write } = keys
    const fields = { address: at, tokenFile: keys['token-file'], tls: secure, write }
    if (fields.tokenFile === undefined && fields.tls?.clientCa === undefined) {
      context.addIssue(faultAt([], 'expected token-file, or tls with client-ca'))
    }
    if (fields.tls === undefined && !isLoopback(fields.address.family, fields.address.octets)) {
      const text = formatAddress(fields.address.family, fields.address.octets)
      const found = `found ${text}, which is not a loopback address`
      context.addIssue(
        faultAt(['address'], `${found}: expected tls as well, which keeps the token secret`),
      )
    }
    return fields
  },
)
