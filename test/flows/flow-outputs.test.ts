import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SyslogOutput } from '../../src/flows/flow-outputs.ts'
import { isBuilt } from '../../src/native/native.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { FakeClock } from '../support/fake-clock.ts'

const skip = isBuilt('posix') ? false : 'posix.node is not built'

/** A system log at a UNIX socket, which Node cannot make: prints each datagram on a line. */
const RECEIVER = `use Socket; $| = 1; socket(S, PF_UNIX, SOCK_DGRAM, 0); bind(S, sockaddr_un($ARGV[0])) or die $!;
while (defined recv(S, $m, 65535, 0)) { print "$m\\n" }`

class Receiver {
  text = ''
  readonly #child: ChildProcess

  constructor(path: string) {
    this.#child = spawn('perl', ['-e', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.text += text))
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill()
    await ended
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 15_000; !isSo(); await sleep(10)) {
    assert.ok(performance.now() < deadline, `expected ${what}`)
  }
}

test(
  'SyslogOutput sends a datagram for each line, keeps lines without a receiver, and finds a new receiver',
  { skip },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'syslog-'))
    const path = join(folder, 'log')
    const logged: string[] = []
    const log = await openLog({
      level: 'info',
      format: 'json',
      clock: new FakeClock(),
      write: (line) => void logged.push(line),
    })
    const output = new SyslogOutput(log, path)
    output.write('{"a":1}\n{"a":2}\n')
    output.tick()
    assert.equal(output.room, 262_144 - 16, 'kept')
    assert.equal(logged.length, 1)
    assert.match(logged[0] ?? '', /ENOENT.*flows cannot be sent to syslog/)
    const receivers: Receiver[] = []
    try {
      for (const more of ['{"a":3}\n', '{"a":4}\n']) {
        const receiver = new Receiver(path)
        receivers.push(receiver)
        await until('the socket', () => existsSync(path))
        output.write(more)
        output.tick()
        await until('the line', () => receiver.text.includes(more.trim()))
        assert.equal(output.room, 262_144)
        await receiver.stop()
        rmSync(path)
      }
      const line = (text: string): string => `<30>namegate[${process.pid}]: ${text}\n`
      assert.equal(receivers[0]?.text, [1, 2, 3].map((n) => line(`{"a":${n}}`)).join(''))
      assert.equal(receivers[1]?.text, line('{"a":4}'))
    } finally {
      await output.stop()
      rmSync(folder, { recursive: true })
    }
  },
)
