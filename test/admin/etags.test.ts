// ETags of resources on a running daemon: two clients that change the same resource do not overwrite each other's change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isKnown, unmet } from '../../src/admin/preconditions.ts'
import { http, type HttpAnswer } from '../support/nodes/admin.ts'
import { policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder } from '../support/nodes/daemon-process.ts'

test('unmet and isKnown compare headers with the version of an object', () => {
  const rows: readonly (readonly [
    header: string,
    tag: string | undefined,
    unmetIfMatch: boolean,
    unmetIfNoneMatch: boolean,
    reason: string,
  ])[] = [
    ['"a"', '"a"', false, true, 'the same version'],
    ['"b"', '"a"', true, false, 'another version'],
    ['"b", "a"', '"a"', false, true, 'one of a list'],
    ['W/"a"', '"a"', false, true, 'a weak tag'],
    ['*', '"a"', false, true, 'it exists'],
    ['*', undefined, true, false, 'it does not exist'],
    ['"a"', undefined, true, false, 'it does not exist any more'],
    ['', '"a"', true, false, 'an empty header'],
  ]
  for (const [header, tag, only, unless, reason] of rows) {
    assert.equal(unmet({ 'if-match': header }, tag) !== undefined, only, reason)
    assert.equal(unmet({ 'if-none-match': header }, tag) !== undefined, unless, reason)
    if (tag !== undefined) assert.equal(isKnown({ 'if-none-match': header }, tag), unless, reason)
  }
  assert.deepEqual([unmet({}, undefined), unmet({}, '"a"')], [undefined, undefined])
})

test('the ETag of a resource changes with the resource, and a restart changes every ETag', async () => {
  const folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['a.example']),
      'endpoints.yaml': 'endpoints: []\n',
      'resources.yaml': 'resources: [{ name: of-file, addresses: [192.0.2.10] }]\n',
    },
    config: { resources: '{ files: [resources.yaml] }' },
  })
  const send = async (
    method: string,
    name: string,
    headers: Readonly<Record<string, string>> = {},
    body?: object,
  ): Promise<HttpAnswer> => {
    const given = body === undefined ? {} : { body: JSON.stringify(body) }
    const path = `/v1/resources${name === '' ? '' : `/${name}`}`
    return await http({ socketPath: folder.in('admin.sock') }, path, { method, headers, ...given })
  }
  const tagOf = async (name: string) => String((await send('GET', name)).headers.etag)
  try {
    const daemon = await folder.serve()
    const body = { addresses: ['198.51.100.8'], ttl: '12h' }
    const made = await send('PUT', 'vm', { 'if-none-match': '*' }, body)
    const first = String(made.headers.etag)
    const list = await tagOf('')
    assert.equal(made.status, 200)
    assert.match(first, /^"[0-9a-z]+-\d+"$/)
    assert.equal(await tagOf('vm'), first)
    const same = await send('GET', 'vm', { 'if-none-match': first })
    assert.deepEqual([same.status, same.text, same.headers.etag], [304, '', first])
    assert.equal((await send('GET', '', { 'if-none-match': list })).status, 304)

    const renewed = await send('PUT', 'vm', { 'if-match': first }, body)
    const second = String(renewed.headers.etag)
    assert.notEqual(second, first, 'the end of the resource is another one')
    assert.notEqual(await tagOf(''), list)
    const late = await send('PUT', 'vm', { 'if-match': first }, { addresses: ['198.51.100.9'] })
    assert.equal(late.status, 412, 'the client has an old version')
    assert.match(late.text, /"type":"urn:namegate:problem:precondition-failed"/)
    assert.match((await send('GET', 'vm')).text, /198\.51\.100\.8/)
    assert.equal((await send('DELETE', 'vm', { 'if-match': first })).status, 412)
    assert.equal((await send('DELETE', 'gone', { 'if-match': first })).status, 404)

    const plain = { addresses: ['198.51.100.9'] }
    const third = String((await send('PUT', 'vm', {}, plain)).headers.etag)
    const again = await send('PUT', 'vm', { 'if-match': third }, plain)
    assert.equal(again.headers.etag, third, 'nothing has changed')
    const ofFile = await tagOf('of-file')
    assert.equal((await send('PUT', 'of-file', { 'if-match': ofFile }, plain)).status, 409)

    await daemon.process.stop()
    const next = await folder.serve()
    assert.notEqual(await tagOf('vm'), third)
    assert.equal((await send('DELETE', 'vm', { 'if-match': third })).status, 412)
    const last = await tagOf('vm')
    assert.equal((await send('DELETE', 'vm', { 'if-match': last })).status, 200)
    assert.equal((await send('GET', 'vm')).status, 404)
    await next.process.stop()
  } finally {
    folder.remove()
  }
})
