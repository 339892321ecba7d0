// Certificates for a server on 127.0.0.1, made by openssl(1).

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The reason to skip tests over TLS; false if they can run. */
export const NO_OPENSSL =
  spawnSync('openssl', ['version']).error === undefined ? false : 'no openssl(1)'

export interface ServerCertificate {
  readonly cert: string
  readonly key: string
}

/** Makes a certificate that signs itself, and its key, in `folder`. */
export function makeCertificate(folder: string, name = 'server'): ServerCertificate {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const { status, stderr } = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
      ...['-keyout', key, '-out', cert, '-days', '2', '-subj', `/CN=${name}`],
      ...['-addext', 'subjectAltName=IP:127.0.0.1,DNS:api.test'],
    ],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr)
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}
