// The read of routing that the daemon repeats each second. Its octets change when a rule or route of namegate changes, or when a new one
// could match namegate's packets, in either family.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { isBuilt, loadPosix } from '../../../src/native/native.ts'
import { canUseLab } from '../../support/labs/lab.ts'

const skip = canUseLab() ?? (isBuilt('posix') ? false : 'the native part is not built')
const [PROTOCOL, TABLE, MARK, LAST] = [78, 20039, 0x4e47, 55]
const OURS = [
  'route add local default dev lo table 20039 protocol 78',
  'rule add pref 55 nop protocol 78',
  'rule add pref 53 iif lo fwmark 0x4e47 goto 55 protocol 78',
  'rule add pref 54 fwmark 0x4e47 lookup 20039 protocol 78',
]

test(
  'routingRead reports every change of ours, and those of others that could match our packets',
  { skip },
  () => {
    const posix = loadPosix()
    assert.equal(posix.unshareNetwork(), 0)
    const ip = (words: string): void => void execFileSync('ip', words.split(' '))
    const read = (): string => {
      const into = new Uint8Array(8192)
      const size = posix.routingRead(PROTOCOL, TABLE, MARK, LAST, into)
      assert.ok(size >= 0, `${size}`)
      return Buffer.from(into.subarray(0, size)).toString('hex')
    }
    ip('link set lo up')
    for (const family of ['-4', '-6']) for (const words of OURS) ip(`${family} ${words}`)
    const good = read()
    assert.equal(read(), good)
    const others = [
      'rule add pref 99 fwmark 9 lookup 200',
      'route add local default dev lo table 200 protocol 78',
      'route add local default dev lo table 200 protocol 78 metric 7',
      'route add unreachable default table 201',
    ]
    for (const family of ['-4', '-6']) for (const words of others) ip(`${family} ${words}`)
    assert.equal(read(), good, 'rules and tables of others')

    const taking = [
      'rule add pref 55 lookup 200',
      'rule add pref 0 lookup 200',
      'rule add pref 99 fwmark 0x4e47 lookup 200',
      'rule add pref 99 fwmark 0x40/0x40 lookup 200',
      'route add unreachable 2001:db8::/32 table 20039',
    ]
    for (const words of taking) {
      ip(`-6 ${words}`)
      assert.notEqual(read(), good, words)
      ip(`-6 ${words.replace(' add ', ' del ')}`)
      assert.equal(read(), good, `${words}: gone`)
    }

    for (const family of ['-4', '-6']) {
      for (const words of OURS) {
        ip(`${family} ${words.replace(' add ', ' del ')}`)
        assert.notEqual(read(), good, `${family} ${words}: gone`)
        ip(`${family} ${words}`)
        assert.equal(read(), good, `${family} ${words}: there again`)
      }
    }
    ip('rule del pref 54')
    ip('rule add pref 54 fwmark 0x4e48 lookup 20039 protocol 78')
    assert.notEqual(read(), good, 'with another mark')

    const small = posix.routingRead(PROTOCOL, TABLE, MARK, LAST, new Uint8Array(100))
    assert.equal(small, 100, 'routingRead fills a small buffer at most')
    const functions: Record<string, unknown> = { ...posix }
    const { routingRead } = functions
    assert.ok(typeof routingRead === 'function')
    assert.throws(
      () => Reflect.apply(routingRead, undefined, [PROTOCOL, TABLE, MARK, LAST]),
      TypeError,
    )
  },
)
