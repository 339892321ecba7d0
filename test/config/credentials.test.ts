// Files of the page that a supervisor gives as credentials: which texts are names of credentials, which path each name gets with and without
// the folder, and where the fault of a missing credential is.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { CredentialFolder } from '../../src/config/credentials.ts'
import { configFromObject, parseConfig } from '../../src/config/load.ts'
import { InvalidInputError } from '../../src/core/errors.ts'
import { isLoopback } from '../../src/core/ip.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-credentials-'))
after(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'token'), '')

const PAGE = `admin:
  page:
    address: 127.0.0.1:9466
    token-file: credential:token
    tls: { certificate: credential:cert, key: 'credential:the key', client-ca: ca.pem }
`

function filesOf(text: string, credentials?: CredentialFolder): unknown {
  const { page } = parseConfig(text, '/etc/n/n.yaml', isLoopback, credentials).admin
  return [page?.tokenFile, page?.tls?.certificate, page?.tls?.key, page?.tls?.clientCa]
}

function faultsOf(read: () => unknown): string {
  try {
    read()
    return ''
  } catch (error) {
    assert.ok(error instanceof InvalidInputError)
    return error.message
  }
}

test('parseConfig keeps the names of credentials when their files are not read', () => {
  assert.deepEqual(filesOf(PAGE), [
    'credential:token',
    'credential:cert',
    'credential:the key',
    '/etc/n/ca.pem',
  ])
})

test('parseConfig finds credentials in their folder, and reports each missing one', () => {
  const token = 'admin: { page: { token-file: credential:token } }\n'
  assert.deepEqual(filesOf(token, folder), [join(folder, 'token'), ...Array<undefined>(3)])
  const remedy = (name: string): string =>
    `expected LoadCredential=${name}:FILE in the systemd unit, and a restart of the unit`
  assert.equal(
    faultsOf(() => filesOf(PAGE, folder)),
    [
      `/etc/n/n.yaml:5:25: admin.page.tls.certificate: found credential:cert, but ${folder} has no cert: ${remedy('cert')}`,
      `/etc/n/n.yaml:5:47: admin.page.tls.key: found credential:the key, but ${folder} has no the key: ${remedy('the key')}`,
    ].join('\n'),
  )
  assert.equal(
    faultsOf(() => filesOf(token, '')),
    `/etc/n/n.yaml:1:30: admin.page.token-file: found credential:token, but $CREDENTIALS_DIRECTORY is not set: ${remedy('token')}`,
  )
})

test('configFromObject looks for credentials of its own process', () => {
  const config = { admin: { page: { 'token-file': 'credential:token' } } }
  assert.match(
    faultsOf(() => configFromObject(config, 'given', isLoopback)),
    /^given: admin\.page\.token-file: .*is not set/,
  )
  const { page } = configFromObject(config, 'given', isLoopback, folder).admin
  assert.equal(page?.tokenFile, join(folder, 'token'))
})

const NAMES: readonly (readonly [text: string, isTaken: boolean, reason: string])[] = [
  ['credential:a', true, 'one letter'],
  ['credential:page.token-1', true, 'what a file can be called'],
  ['credential:..a', true, 'no folder'],
  [`credential:${'a'.repeat(255)}`, true, 'the longest name of a file'],
  [`credential:${'a'.repeat(256)}`, false, 'longer than a name of a file'],
  ['credential:', false, 'no name'],
  ['credential:.', false, 'the folder itself'],
  ['credential:..', false, 'the folder above'],
  ['credential:../shadow', false, 'a file outside of the folder'],
  ['credential:a:b', false, 'systemd separates name and path by a colon'],
  ['credential:a\nb', false, 'a control character'],
  ['credential:ä', false, 'no ASCII'],
  ['./credential:', true, 'a path'],
]

for (const [text, isTaken, reason] of NAMES) {
  test(`parseConfig ${isTaken ? 'takes' : 'refuses'} ${JSON.stringify(text.slice(0, 20))}: ${reason}`, () => {
    const config = `admin: { page: { token-file: ${JSON.stringify(text)} } }\n`
    const faults = faultsOf(() => filesOf(config))
    if (isTaken) assert.equal(faults, '')
    else
      assert.match(
        faults,
        /:1:30: admin\.page\.token-file: found .*expected a path or credential:NAME/,
      )
  })
}
