// `policy suggest` with flows that are wrong, cut, incomplete or random.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { CommandOutput } from '../../src/cli/command.ts'
import { InvalidInputError, UnavailableError } from '../../src/core/errors.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { until } from '../support/peers/client.ts'
import { FlowFolder, mkLine, NODE_1, NODE_2, suggest, WORLD } from '../support/nodes/flow-lines.ts'
import { namegate } from '../support/nodes/command.ts'

const policySuggestCommand = namegate('policy suggest')

describe('policySuggestCommand', () => {
  let flows: FlowFolder
  before(() => {
    flows = new FlowFolder()
  })
  after(() => flows.remove())

  it('reports a pipe without a writer, and continues when a writer opens it', async () => {
    const pipe = join(flows.path, 'pipe')
    execFileSync('mkfifo', [pipe])
    let [out, err] = ['', '']
    const output: CommandOutput = {
      stdout: (text) => void (out += text),
      stderr: (text) => void (err += text),
    }
    const code = policySuggestCommand(['--flows', pipe, '--labels', 'app=shop'], output)
    await until('it says what it waits for', () => err !== '')
    assert.equal(err, `namegate: ${pipe}: still empty: waiting for a program that writes to it\n`)
    writeFileSync(pipe, mkLine({ name: 'a.b' }))
    assert.equal(await code, 0)
    assert.match(out, /matchName: "?a\.b/)
  })

  it('names the places of malformed lines and what it expected', async () => {
    const rows: readonly (readonly [line: string, expected: string])[] = [
      ['{"kind":"ans', 'found no JSON, expected one JSON object a line'],
      ['[]', 'found a list, expected a JSON object'],
      ['{}', 'kind: found nothing, expected a text'],
      ['{"kind":"asked"}', 'kind: found "asked", expected one of answered, audited,'],
      [mkLine({ name: 'a.b', time: 'now' }), 'time: found "now", expected a time such as'],
      [mkLine({ name: 'a.b', count: -1 }), 'count: found a number, expected a whole number from 0'],
      [mkLine({ peer: 'a.b' }), 'peer: found "a.b", expected an address'],
      [
        mkLine({ peer: '192.0.2.1', port: 65536 }),
        'port: found a number, expected a whole number from 0 to 65535',
      ],
      [
        mkLine({ name: 'a.b', endpoint: 'x\n    - {}' }),
        'endpoint: found "x\\n    - {}", expected a text without control',
      ],
      [
        mkLine({ name: 'a.b' }).replace('["external:app=shop"]', '"x"'),
        'endpointLabels: found "x", expected a list',
      ],
    ]
    for (const [line, expected] of rows) {
      const file = flows.put('bad.jsonl', [mkLine({ name: 'a.b' }), '\n', `${line.trimEnd()}\n`])
      await assert.rejects(suggest('--flows', file), (error: unknown) => {
        assert.ok(error instanceof InvalidInputError)
        const [fault, ...others] = error.faults
        assert.deepEqual(others, [])
        assert.deepEqual(fault?.position, { file, line: 3, column: 1 })
        assert.ok(fault.message.startsWith(expected), `${fault.message} for ${line}`)
        return true
      })
    }
    await assert.rejects(suggest('--flows', join(flows.path, 'nowhere')), /cannot read: ENOENT/)
    await assert.rejects(suggest('--flows', flows.path), /found no flows-\*\.jsonl in this folder/)
  })

  it('skips a cut last line, and reports it', async () => {
    const file = flows.put('cut.jsonl', [
      mkLine({ name: 'a.example' }),
      mkLine({ name: 'b.example' }).slice(0, 40),
    ])
    const { code, out, err } = await suggest('--flows', file)
    assert.equal(code, 0)
    assert.match(out, /matchName: a\.example/)
    assert.match(err, /cut\.jsonl:2: the last line is incomplete and is left out/)
  })

  it('reports that flows were not recorded, and which endpoints no policy can select', async () => {
    const lost = '{"time":"2026-01-02T03:04:05.678Z","kind":"lost","endpoint":null,"count":12}\n'
    const bare = mkLine({ name: 'a.example' }).replace('["external:app=shop"]', '[]')
    const { out, err } = await suggest('--flows', flows.put('bare.jsonl', [lost, bare]))
    assert.equal(out, '')
    assert.match(err, /12 flows were not recorded: something may be missing/)
    assert.match(err, /no policy can select endpoints without labels: shop-1/)
  })

  it('reads the folder of a daemon, oldest file first', async () => {
    const state = mkdtempSync(join(tmpdir(), 'suggest-state-'))
    writeFileSync(join(state, 'flows-0000000002.jsonl'), NODE_2.join(''))
    writeFileSync(join(state, 'flows-0000000001.jsonl'), NODE_1.join(''))
    const { out } = await suggest('--flows', state)
    assert.equal(out, (await suggest(...flows.nodes('n1', 'n2'))).out)
    rmSync(state, { recursive: true })
  })

  it('says the form of --labels if no endpoint has them, and what a key alone means', async () => {
    for (const [given, meant] of [
      ['app', 'app='],
      ['app=none, vm', 'app=none,vm='],
    ] as const) {
      const { code, out, err } = await suggest(...flows.nodes('n1'), '--labels', given)
      assert.deepEqual([code, out], [0, ''])
      assert.match(
        err,
        new RegExp(
          `^namegate: no flow is about an endpoint with ${meant}: write --labels KEY=VALUE,...; KEY alone has the empty value$`,
          'm',
        ),
      )
    }
  })

  it('refuses wrong use, and reports a missing daemon', async () => {
    for (const words of [
      ['--collapse', '1'],
      ['--format', 'xml'],
      ['--labels', '='],
      ['--labels', ','],
    ]) {
      assert.equal((await suggest(...flows.nodes('n1'), ...words)).code, 2, words.join(' '))
    }
    await assert.rejects(suggest('--socket', join(flows.path, 'none.sock')), UnavailableError)
  })

  it('for random flows gives policies that the loader accepts, after which nothing is missing', async () => {
    const name = fc.constantFrom(
      'a.x.example',
      'b.x.example',
      'c.x.example',
      'd.example',
      'e.example',
      '8.8.example',
    )
    const app = fc.constantFrom('shop', 'true', "it's", 'a b')
    const asked = fc.record({ name, app })
    // The endpoint of an address does not change within a recording.
    const peer = fc.constantFrom(
      { peer: '192.0.2.1', labels: WORLD },
      { peer: '2001:db8::1', labels: ['reserved:world', 'reserved:world-ipv6'] },
      { peer: '10.0.9.1', labels: ['k8s:app=db', 'k8s:io.cilium.k8s.policy.cluster=c'] },
      { peer: '10.0.9.2', labels: ['external:vm=1', 'k8s:io.kubernetes.pod.namespace=prod'] },
    )
    const reached = fc
      .record({
        peer,
        app,
        port: fc.constantFrom(80, 443, 8443),
        protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
        names: fc.uniqueArray(name, { maxLength: 3 }),
      })
      .map(({ peer: who, ...rest }) => ({ ...rest, ...who }))
    const collapse = fc.constantFrom('2', '3', '64')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(asked, reached), { maxLength: 12 }),
        collapse,
        async (random, from) => {
          const file = flows.put('random.jsonl', random.map(mkLine))
          const args = ['--flows', file, '--collapse', from]
          const { out } = await suggest(...args)
          assert.ok(!out.includes('policy.cluster'), 'the cluster says nothing of who a peer is')
          if (out === '') return
          assert.deepEqual(loadPolicies(out, 'random.yaml').faults, [])
          const policy = flows.put('random.yaml', [out])
          assert.equal(
            (await suggest(...args, '--policies', policy)).out,
            '',
            readFileSync(policy, 'utf8'),
          )
        },
      ),
      { numRuns: 25 },
    )
  })

  it('asks the daemon at the socket that is named', async () => {
    const nowhere = join(flows.path, 'no.sock')
    await assert.rejects(suggest('--socket', nowhere), UnavailableError)
  })
})
