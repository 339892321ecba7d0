// Credentials reads the token, the authority and the client's certificate. A file is read again when it has changed. Its dates and size are
// looked at before each request (the token) and before each connection (the rest). So after 401 the next request has the token of that time.

import { readFileSync, statSync } from 'node:fs'
import type { SecureContextOptions } from 'node:tls'
import type { ApiAccess, Material } from './access.ts'

interface Read {
  readonly signature: string
  readonly text: string
}

export class Credentials {
  /** How often a file was read. */
  reads = 0
  readonly #access: ApiAccess
  /** By path. */
  readonly #files = new Map<string, Read>()

  constructor(access: ApiAccess) {
    this.#access = access
  }

  /** The value of the header Authorization; undefined without a token. Throws if the file of the token can not be read. */
  authorization(): string | undefined {
    const { token } = this.#access
    return token === undefined ? undefined : `Bearer ${this.#read(token).trim()}`
  }

  /** The options of a TLS connection. Throws if a file can not be read. */
  tls(): SecureContextOptions & {
    readonly rejectUnauthorized: boolean
    readonly servername?: string
  } {
    const { authority, client, isInsecure, serverName } = this.#access
    return {
      rejectUnauthorized: !isInsecure,
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(authority === undefined ? {} : { ca: this.#read(authority) }),
      ...(client === undefined
        ? {}
        : { cert: this.#read(client.certificate), key: this.#read(client.key) }),
    }
  }

  #read(material: Material): string {
    if (material.kind === 'text') return material.text
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(material.path)
    const signature = `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`
    const known = this.#files.get(material.path)
    if (known?.signature === signature) return known.text
    const text = readFileSync(material.path, 'utf8')
    this.reads++
    this.#files.set(material.path, { signature, text })
    return text
  }
}
