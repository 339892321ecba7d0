// Client certificates for the page (`admin.page.tls.client-ca`), over TLS, with authorities that openssl(1) makes here: a certificate of the
// named authority replaces the token, and no other does.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { send, servePage, type PageLab, type Sent } from '../../support/nodes/page.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const skip = spawnSync('openssl', ['version']).error === undefined ? false : 'no openssl(1)'
const POLICY = 'egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc']

const folder = mkdtempSync(join(tmpdir(), 'namegate-certificates-'))
after(() => rmSync(folder, { recursive: true }))

interface Pair {
  readonly cert: string
  readonly key: string
}

/** Makes a certificate and its key: of an authority, or signed by `issuer`. Returns their paths. */
function make(name: string, issuer?: Pair, more: readonly string[] = []): Pair {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const signed = issuer === undefined ? [] : ['-CA', issuer.cert, '-CAkey', issuer.key]
  const subject = ['-subj', `/CN=${name}`, '-days', '2', ...more]
  const args = ['req', '-x509', ...KEY, '-keyout', key, '-out', cert, ...subject, ...signed]
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return { cert, key }
}

function read({ cert, key }: Pair): Pair {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

const NO_AUTHORITY = ['-addext', 'basicConstraints=critical,CA:FALSE']

async function serve(context: TestContext, authority: Pair): Promise<PageLab> {
  const server = make('localhost', authority, NO_AUTHORITY)
  const tls = { certificate: server.cert, key: server.key, clientCa: authority.cert }
  const lab = await servePage(mkAdmin(mkPolicyNode([POLICY])).state, { tls, tokenFile: undefined })
  context.after(async () => await lab.stop())
  return lab
}

test(
  'PageServer serves a client with a certificate of the named authority, and no other',
  { skip },
  async (context) => {
    const [authority, other] = [make('authority'), make('other')]
    const good = read(make('good', authority, NO_AUTHORITY))
    const foreign = read(make('foreign', other, NO_AUTHORITY))
    const self = read(make('good-self', undefined, NO_AUTHORITY))
    const server = ['-addext', 'extendedKeyUsage=serverAuth']
    const ofServer = read(make('of-server', authority, [...NO_AUTHORITY, ...server]))
    const lab = await serve(context, authority)
    const rows: readonly (readonly [tls: Sent['tls'], status: number, reason: string])[] = [
      [true, 401, 'no certificate'],
      [foreign, 401, 'another authority'],
      [self, 401, 'its own authority'],
      [ofServer, 401, 'a certificate for servers only'],
      [good, 200, 'the right authority'],
    ]
    for (const [tls, status, reason] of rows) {
      for (const path of ['/', '/page/endpoints']) {
        const got = await send(lab.tcp, path, { tls: tls ?? false, headers: { host: 'localhost' } })
        assert.equal(got.status, status, `${reason}: ${path}`)
        if (status === 401) assert.equal(got.body.length, 0, `${reason}: nothing is said`)
      }
    }
    assert.deepEqual([lab.counts.refused.token, lab.errors], [8, []])
  },
)
