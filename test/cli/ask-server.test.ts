// The error of `askServer` when a server cannot be asked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askServer } from '../../src/cli/ask-server.ts'
import { UnavailableError } from '../../src/core/errors.ts'
import { parseSocketAddress } from '../../src/core/socket-address.ts'

for (const overTcp of [false, true]) {
  test(`askServer rejects when the kernel refuses to reach the server, over ${overTcp ? 'TCP' : 'UDP'}`, async () => {
    // A broadcast address, which the kernel gives to no ordinary socket.
    const server = parseSocketAddress('255.255.255.255:53')
    assert.ok(server !== undefined)
    await assert.rejects(
      askServer(server, new Uint8Array(12), overTcp),
      (error) =>
        error instanceof UnavailableError &&
        /^No answer from 255\.255\.255\.255:53 over .*: (connect|ENETUNREACH|EACCES)/.test(
          error.message,
        ),
    )
  })
}
