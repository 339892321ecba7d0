import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnavailableError } from '../../src/core/errors.ts'
import { mustRun, runTool, toolError, toolRunner } from '../../src/intercept/tools.ts'

test('toolError makes one line with the remedy from the output of a tool', () => {
  const rows: readonly (readonly [stderr: string, message: string, reason: string])[] = [
    [
      'ENOENT',
      'Cannot run nft: it is not installed: apt-get install nftables',
      'the tool is missing',
    ],
    [
      'netlink: Error: cache initialization failed: Operation not permitted\n',
      'Cannot use nft in this network namespace: Operation not permitted: run as root or with CAP_NET_ADMIN',
      'no privilege',
    ],
    [
      '\n/dev/stdin:3:1-4: Error: planted\nrule\n^^^^\n',
      'Cannot nft -f -: /dev/stdin:3:1-4: Error: planted',
      'the first line is the reason',
    ],
    ['', 'Cannot nft -f -: it says nothing', 'a tool that dies'],
  ]
  for (const [stderr, message, reason] of rows) {
    assert.equal(
      toolError('nft', ['-f', '-'], { code: 1, stdout: '', stderr }).message,
      message,
      reason,
    )
  }
  const old = toolError('nft', [], {
    code: 1,
    stdout: '',
    stderr: 'Error: Could not process rule: No such file or directory',
  })
  assert.match(old.message, /the kernel lacks it; it needs nftables with tproxy/)
})

test(
  'runTool returns the output of a tool, and mustRun throws when the tool fails',
  { skip: process.platform !== 'linux' },
  async () => {
    const { code, stdout } = await runTool('ip', ['-V'])
    if (code === -1) return // iproute2 is not installed here
    assert.match(stdout, /iproute2/)
    await assert.rejects(mustRun(runTool, 'ip', ['no-such-object']), /Cannot ip no-such-object: /)
  },
)

test(
  'toolRunner ends a tool that takes longer than its limit, and does not wait for its children',
  { skip: process.platform !== 'linux' },
  async () => {
    const run = toolRunner(50)
    for (const script of ['exec sleep 60', 'sleep 11; true']) {
      const started = performance.now()
      await assert.rejects(
        run('sh', ['-c', script]),
        new UnavailableError(
          'Cannot run sh: it did not end within 50 ms and was ended: try again, and look for a process that holds up nftables or routing',
        ),
      )
      assert.ok(performance.now() - started < 10_000, script)
    }
    assert.equal((await run('sh', ['-c', 'exit 3'])).code, 3)
  },
)
