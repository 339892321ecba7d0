import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPrivileged, resolvText } from '../../src/sandbox/caller.ts'
import { execFault } from '../../src/sandbox/faults.ts'
import { UnavailableError } from '../../src/core/errors.ts'

test('isPrivileged needs CAP_SYS_ADMIN and CAP_NET_ADMIN, for any user', () => {
  const rows: readonly (readonly [mask: string, expected: boolean, why: string])[] = [
    ['000001ffffffffff', true, 'all of them'],
    ['0000000000201000', true, 'these two'],
    ['00000000a80425fb', false, 'root of a container'],
    ['0000000000001000', false, 'a sidecar'],
    ['0000000000000000', false, 'an ordinary user'],
  ]
  for (const [mask, expected, why] of rows) {
    assert.equal(isPrivileged(`Name:\tx\nCapEff:\t${mask}\nCapBnd:\t0\n`), expected, why)
  }
})

test('resolvText keeps search lists and options, and one server', () => {
  const text =
    '# made by x\nnameserver 192.0.2.1\nnameserver ::1\nsearch corp.example\noptions ndots:2\n'
  assert.equal(resolvText(text), 'nameserver 127.0.0.1\nsearch corp.example\noptions ndots:2\n')
  assert.equal(resolvText(''), 'nameserver 127.0.0.1\n')
})

test('execFault distinguishes a command that cannot be run from a sandbox that cannot be made', () => {
  assert.deepEqual(execFault({ step: 'exec', errno: 2, detail: 'nope' }), {
    code: 127,
    text: 'Cannot run nope: command not found',
  })
  assert.equal(execFault({ step: 'exec', errno: 13, detail: 'x' }).code, 126)
  const rows: readonly (readonly [step: string, errno: number, why: RegExp])[] = [
    ['userns', 1, /allows no user namespaces: run as root/],
    ['proc', 1, /systempaths=unconfined/],
    ['seccomp', 22, /CONFIG_SECCOMP_FILTER/],
    ['publish', 98, /already in use/],
    ['launcher', 0, /it ended early/],
  ]
  for (const [step, errno, why] of rows) {
    const detail =
      step === 'publish' ? '127.0.0.1 80 80' : step === 'launcher' ? 'it ended early' : ''
    assert.throws(
      () => execFault({ step, errno, detail }),
      (error) => error instanceof UnavailableError && why.test(error.message),
      step,
    )
  }
})
