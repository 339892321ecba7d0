import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foreignStatus, isLocalName } from '../../../src/admin/page/foreign.ts'
import { Guesses } from '../../../src/admin/page/guesses.ts'
import { Sessions } from '../../../src/admin/page/sessions.ts'

type Row = readonly [
  headers: Record<string, string>,
  status: 403 | 421 | undefined,
  reason: string,
  url?: string,
]

const NAVIGATION = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
const ROWS: readonly Row[] = [
  [{ host: 'localhost:8080' }, undefined, 'a forwarded port'],
  [{ host: 'LOCALHOST' }, undefined, 'names have no case'],
  [{ host: 'admin' }, undefined, 'curl with a made-up name'],
  [{ host: '127.0.0.1:9466' }, undefined, 'an address is no name that DNS can turn'],
  [{ host: '[::1]:9466' }, undefined, 'an IPv6 address'],
  [{}, undefined, 'a program without Host'],
  [{ host: 'evil.example' }, 421, 'a name that points here'],
  [{ host: 'evil.example:9466' }, 421, 'the same with the port'],
  [{ host: 'localhost.evil.example' }, 421, 'a name that begins well'],
  [{ host: 'localhost:1', origin: 'http://localhost:1' }, undefined, 'the page itself'],
  [{ host: 'localhost:1', origin: 'http://localhost:2' }, 403, 'a page on another port'],
  [{ host: 'localhost:1', origin: 'https://localhost:1' }, 403, 'another scheme'],
  [{ host: 'localhost', origin: 'null' }, 403, 'a sandboxed frame'],
  [{ host: 'localhost', origin: 'http://evil.example' }, 403, 'a form of another site'],
  [{ host: 'localhost', 'sec-fetch-site': 'same-origin' }, undefined, 'a script of the page'],
  [{ host: 'localhost', 'sec-fetch-site': 'none' }, undefined, 'a typed address'],
  [{ host: 'localhost', 'sec-fetch-site': 'cross-site' }, 403, 'an image of another site'],
  [{ host: 'localhost', 'sec-fetch-site': 'same-site' }, 403, 'another port, by an image'],
  [{ host: 'localhost', ...NAVIGATION }, undefined, 'a link to the page'],
  [{ host: 'localhost', ...NAVIGATION }, 403, 'a link to data', '/v1/status'],
]

test('foreignStatus refuses requests of other sites, and no others', () => {
  for (const [headers, status, reason, url = '/'] of ROWS) {
    const found = foreignStatus(
      { headers, method: 'GET', url },
      { scheme: 'http', isOwnName: isLocalName },
    )
    assert.equal(found, status, reason)
  }
})

test('Guesses lets an address try five times a minute, and others meanwhile', () => {
  let now = 0
  const guesses = new Guesses({ now: () => now })
  for (let i = 0; i < 5; i++) {
    assert.equal(guesses.wait('192.0.2.1'), 0)
    guesses.add('192.0.2.1')
  }
  assert.equal(guesses.wait('192.0.2.1'), 60)
  assert.equal(guesses.wait('192.0.2.2'), 0, 'another address')
  now = 59_500
  assert.equal(guesses.wait('192.0.2.1'), 1)
  now = 60_000
  assert.equal(guesses.wait('192.0.2.1'), 0, 'the minute is over')
  guesses.add('192.0.2.1')
  assert.equal(guesses.wait('192.0.2.1'), 0, 'a new minute has begun')
})

test('Guesses counts the addresses of an IPv6 /64 as one', () => {
  const guesses = new Guesses({ now: () => 0 })
  for (let i = 0; i < 5; i++) guesses.add(`2001:db8:0:1::${i}`)
  const rows: readonly (readonly [address: string, waits: boolean])[] = [
    ['2001:db8:0:1:ffff::1', true],
    ['2001:db8:0:1:1:2:3:4', true],
    ['2001:db8:0:2::1', false],
    ['::1', false],
  ]
  for (const [address, waits] of rows) assert.equal(guesses.wait(address) > 0, waits, address)
})

test('Sessions takes the token, and cookies until they end', () => {
  let now = 0
  const sessions = new Sessions('0123456789abcdef', true, { now: () => now })
  assert.ok(sessions.isToken('0123456789abcdef'))
  for (const text of ['', '0123456789abcde', '0123456789abcdef0', 'x'.repeat(5000)]) {
    assert.equal(sessions.isToken(text), false, text)
  }
  const set = sessions.open()
  assert.match(
    set,
    /^namegate=[0-9a-f]{64}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  )
  const cookie = set.split(';')[0] ?? ''
  assert.ok(sessions.has(`a=b; ${cookie}`), 'beside another cookie')
  assert.equal(sessions.has(`${cookie}0`), false, 'a longer one')
  assert.equal(sessions.has(undefined), false)
  now = 12 * 3_600_000
  assert.equal(sessions.has(cookie), false, 'after twelve hours')
  const again = sessions.open().split(';')[0] ?? ''
  assert.match(sessions.close(again), /^namegate=; Max-Age=0/)
  assert.equal(sessions.has(again), false, 'after signing out')
})

test('Sessions keeps at most 64, and ends the oldest', () => {
  const sessions = new Sessions('0123456789abcdef', false, { now: () => 0 })
  const cookies = Array.from({ length: 65 }, () => sessions.open().split(';')[0] ?? '')
  assert.deepEqual(
    cookies.map((each) => sessions.has(each)).indexOf(true),
    1,
    'only the first has ended',
  )
})
