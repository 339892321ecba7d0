// Sockets of this machine: a datagram to a supervisor, messages with descriptors, and the kind of a passed socket.

import assert from 'node:assert/strict'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { isBuilt, loadPosix, MESSAGE_FDS_MAX } from '../../src/native/native.ts'

const skip = isBuilt('posix') ? false : 'the native part is not built'
const folder = mkdtempSync(join(tmpdir(), 'namegate-local-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const { EAGAIN, ENOENT, ENAMETOOLONG, ECONNREFUSED, EMSGSIZE, EBADF, EAFNOSUPPORT } =
  constants.errno
const NO_FDS = new Int32Array(0)

/** Two connected ends of a socket at a path of its own. */
function pair(name: string): readonly [number, number] {
  const posix = loadPosix()
  const path = join(folder, name)
  const listener = posix.localListen(path)
  assert.ok(listener > 0)
  assert.equal(posix.localAccept(listener), -EAGAIN, 'no client waits yet')
  const near = posix.localConnect(path)
  const far = posix.localAccept(listener)
  assert.ok(near > 0 && far > 0)
  posix.closeFd(listener)
  return [near, far]
}

describe('posix', { skip }, () => {
  test('localSend returns why a datagram does not arrive', () => {
    const posix = loadPosix()
    const octets = Uint8Array.of(1)
    assert.equal(posix.localSend(join(folder, 'nobody'), octets), -ENOENT)
    assert.equal(posix.localSend('@namegate-nobody', octets), -ECONNREFUSED)
    assert.equal(posix.localSend('', octets), -ENAMETOOLONG)
    assert.equal(posix.localSend(`/${'a'.repeat(107)}`, octets), -ENAMETOOLONG)
  })

  test('localListen makes a file that only its owner can use', () => {
    const posix = loadPosix()
    const path = join(folder, 'mode')
    const fd = posix.localListen(path)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    posix.closeFd(fd)
  })

  test('localPeer names the process at the other end', () => {
    const posix = loadPosix()
    const [near, far] = pair('peer')
    assert.deepEqual(posix.localPeer(far), [process.pid, process.getuid?.()])
    for (const fd of [near, far]) posix.closeFd(fd)
  })

  test('messageSend and messageReceive transfer whole messages with their descriptors', () => {
    const posix = loadPosix()
    const [near, far] = pair('messages')
    const into = new Uint8Array(64)
    const fds = new Int32Array(MESSAGE_FDS_MAX + 1)
    assert.equal(posix.messageReceive(far, into, fds), -EAGAIN)
    const file = join(folder, 'file')
    writeFileSync(file, 'hello')
    const given = openSync(file, 'r')
    assert.equal(posix.messageSend(near, Uint8Array.of(1, 2, 3), Int32Array.of(given), 1), 0)
    assert.equal(posix.messageSend(near, Uint8Array.of(4), NO_FDS, 0), 0)
    closeSync(given)
    assert.equal(posix.messageReceive(far, into, fds), 3)
    assert.deepEqual([...into.subarray(0, 3)], [1, 2, 3])
    assert.equal(fds[0], 1)
    const read = Buffer.alloc(5)
    readSync(fds[1]!, read)
    assert.equal(read.toString(), 'hello', 'it is the same file')
    closeSync(fds[1]!)
    assert.equal(posix.messageReceive(far, into, fds), 1)
    assert.equal(fds[0], 0)
    assert.equal(posix.messageSend(near, new Uint8Array(65), NO_FDS, 0), 0)
    assert.equal(posix.messageReceive(far, into, fds), -EMSGSIZE, 'the message was cut')
    posix.closeFd(near)
    assert.equal(posix.messageReceive(far, into, fds), 0, 'the other end is closed')
    posix.closeFd(far)
    assert.equal(posix.messageSend(far, Uint8Array.of(1), NO_FDS, 0), -EBADF)
  })

  test('messageSend refuses a count of missing descriptors', () => {
    const posix = loadPosix()
    assert.throws(() => posix.messageSend(0, Uint8Array.of(1), NO_FDS, 1), TypeError)
    assert.throws(() => posix.messageSend(0, Uint8Array.of(1), new Int32Array(300), 254), TypeError)
  })

  test('socketFacts separates sockets from other descriptors', () => {
    const posix = loadPosix()
    const [near, far] = pair('facts')
    const address = new Uint8Array(16)
    assert.equal(posix.socketFacts(near, address), -EAFNOSUPPORT)
    const file = openSync(join(folder, 'file'), 'a')
    assert.equal(posix.socketFacts(file, address), -constants.errno.ENOTSOCK)
    closeSync(file)
    for (const fd of [near, far]) posix.closeFd(fd)
  })
})
