// The packed package in a project of its own, with only the packages that it declares. A strict compiler checks its types, with
// declarations. Plain Node runs its program. The examples of docs/library.md are compiled and run there.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { endpointsText, mkFolder, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder } from '../support/nodes/daemon-process.ts'
import { run } from '../support/labs/lab-process.ts'
import { answerTo, FakeUpstream } from '../support/peers/upstream.ts'

const skip = existsSync('dist/src/library.d.ts') ? false : 'dist/ is not built: npm run build'
const MANIFEST = z.object({ dependencies: z.record(z.string(), z.string()) })
const project = mkFolder()
let upstream: FakeUpstream

before(async () => {
  upstream = await FakeUpstream.start((query) => {
    query.send(answerTo(query, { addresses: ['192.0.2.7'] }))
  })
  if (skip === false) await install()
})
after(async () => {
  await upstream.stop()
  rmSync(project, { recursive: true })
})

/** Installs the package like `npm install`, with the packages of this repository. */
async function install(): Promise<void> {
  const packed = await run(
    'npm',
    ['pack', '--ignore-scripts', '--silent', '--pack-destination', project],
    {
      limitMs: 60_000,
    },
  )
  assert.equal(packed.code, 0, packed.stderr)
  const own = join(project, 'node_modules', 'namegate')
  mkdirSync(own, { recursive: true })
  const archive = join(project, packed.stdout.trim().split('\n').at(-1) ?? '')
  const unpacked = await run('tar', ['-xzf', archive, '-C', own, '--strip-components=1'])
  assert.equal(unpacked.code, 0, unpacked.stderr)
  // Without its scripts, `npm pack` leaves out the prebuilt native part.
  cpSync('build/Release', join(own, 'build/Release'), { recursive: true })
  const { dependencies } = MANIFEST.parse(
    JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')),
  )
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    const link = join(project, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(resolve('node_modules', name), link)
  }
  write('package.json', '{ "type": "module", "private": true }')
}

function write(name: string, text: string): string {
  const path = join(project, name)
  writeFileSync(path, text)
  return path
}

/** Compiles files of the project. Returns the output of the compiler. */
async function compile(
  files: string | readonly string[],
  types: readonly string[],
): Promise<string> {
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
    ...{ noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: true },
    ...{ target: 'es2023', module: 'nodenext', lib: ['es2023'], types },
  }
  const config = write('tsconfig.json', JSON.stringify({ compilerOptions, files: [files].flat() }))
  const { stdout, stderr } = await run(resolve('node_modules/.bin/tsc'), ['-p', config], {
    cwd: project,
    limitMs: 120_000,
  })
  return stdout + stderr
}

async function execute(name: string, socket = ''): Promise<string> {
  const env = { UPSTREAM: `127.0.0.1:${upstream.port}`, NAMEGATE_SOCKET: socket }
  const { code, stdout, stderr } = await run(process.execPath, [name], {
    cwd: project,
    env,
    limitMs: 60_000,
  })
  assert.equal(code, 0, stderr)
  assert.equal(stderr, '')
  return stdout
}

test(
  'the package has types that stand alone, without types of Node or of its own packages',
  { skip },
  async () => {
    write(
      'alone.ts',
      `import { createGate, InvalidInputError, type Flow, type Gate, type GateConfig } from 'namegate'
const config: GateConfig = { listeners: [{ port: 0 }], dns: { hold: { limit: '50ms' } }, limits: { pairs: 1000 } }
const gate: Gate = await createGate({ config, log: (line: string) => void line })
const { revision }: { readonly revision: number } = await gate.setPolicy('a', 'kind: x')
for await (const flow of gate.flows({ only: 'deny', bound: revision })) {
  const seen: Flow = flow
  if ('port' in seen) seen.rules satisfies readonly object[]
  else if ('name' in seen) seen.rcode satisfies string | null
  else if ('expired' in seen) seen.names satisfies readonly string[]
  else seen.policies satisfies string
}
try { await gate.stop() } catch (error) {
  if (error instanceof InvalidInputError) error.faults[0]?.position.line satisfies number | undefined
}
`,
    )
    assert.equal(await compile('alone.ts', []), '')
  },
)

test('the package has types that refuse what the gate would refuse', { skip }, async () => {
  const rows: readonly (readonly [code: string, says: string])[] = [
    ['await createGate({ config: { datapath: { kind: "memroy" } } })', '\'"memroy"\''],
    ['await createGate({ config: { dns: { "min-ttl": "5 minutes" } } })', '5 minutes'],
    ['await createGate({ polices: {} })', 'polices'],
    ['const gate = await createGate(); await gate.setEndpoint({ addresses: [] })', "'name'"],
  ]
  const files = rows.map((_, i) => `bad-${i}.ts`)
  for (const [i, [code]] of rows.entries()) {
    write(`bad-${i}.ts`, `import { createGate } from 'namegate'\n${code}\n`)
  }
  const faults = (await compile(files, [])).split(/^(?=bad-)/m)
  for (const [i, [code, says]] of rows.entries()) {
    const said = faults.filter((fault) => fault.startsWith(`bad-${i}.ts(`)).join('')
    assert.ok(said.includes('error TS') && said.includes(says), `${code}: ${faults.join('')}`)
  }
})

test(
  'the package runs by plain Node, prints nothing of its own and ends by itself',
  { skip },
  async () => {
    write(
      'plain.js',
      `import { createGate } from 'namegate'
const gate = await createGate({ endpoints: [{ name: 'a', addresses: ['127.0.0.1'] }] })
const flows = gate.flows()
setTimeout(() => void gate.stop(), 200)
for await (const flow of flows) console.log(flow)
console.log(gate.addresses.length, gate.status().endpoints.known)
`,
    )
    assert.equal(await execute('plain.js'), '1 1\n')
    write(
      'failed.js',
      `import { createGate } from 'namegate'
await createGate({ config: { listeners: [{ address: '192.0.2.1', port: 0 }] } }).catch((error) => console.log(error.name))
`,
    )
    assert.equal(await execute('failed.js'), 'UnavailableError\n')
  },
)

/** Blocks of docs/library.md by the word after \`ts\`. */
function examples(): ReadonlyMap<string, string> {
  const text = readFileSync('docs/library.md', 'utf8')
  const blocks = [...text.matchAll(/^```ts (\S+)\n([\s\S]*?)^```$/gm)]
  assert.equal(blocks.length, [...text.matchAll(/^```\S/gm)].length, 'every block is tested')
  return new Map(blocks.map(([, word = '', code = '']) => [word, code]))
}

const SAYS: Readonly<Record<string, string>> = {
  'run=ci': `build: [ '192.0.2.7' ]
build: [ '192.0.2.7' ]
build: EREFUSED
lint: [ '192.0.2.7' ]
refused: [ [ 'telemetry.example' ], [] ]
`,
  'run=agent': `docs.example [ '192.0.2.7' ]
granted api.example, in force with revision N
api.example [ '192.0.2.7' ]
refused paste.example
paste.example no
api.example [ '192.0.2.7' ]
enforced: 0
`,
}

for (const [word, says] of Object.entries(SAYS)) {
  test(`docs/library.md shows a program that does what it says: ${word}`, { skip }, async () => {
    const name = word.replace('run=', '')
    write(`${name}.ts`, examples().get(word) ?? '')
    assert.equal(await compile(`${name}.ts`, ['node']), '')
    const lines = (await execute(`${name}.js`)).split('\n')
    // The jobs of the first program run at the same time.
    if (name === 'ci') lines.sort()
    assert.deepEqual(lines, name === 'ci' ? says.split('\n').sort() : says.split('\n'))
  })
}

test('docs/library.md shows a client of a running daemon', { skip }, async () => {
  const folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['packages.example']),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    },
  })
  const daemon = folder.spawn()
  try {
    await daemon.process.untilOutput(/namegate serves/, 60_000)
    const client = await daemon.client()
    await client.ask('telemetry.example')
    client.close()
    write('client.ts', examples().get('run=client') ?? '')
    assert.equal(await compile('client.ts', ['node']), '')
    const problem = '412 urn:namegate:problem:precondition-failed'
    assert.equal(
      await execute('client.js', folder.in('admin.sock')),
      `enforce 1\nme\ndenied: telemetry.example\n${problem}\n`,
    )
  } finally {
    await daemon.process.stop()
    folder.remove()
  }
})

test(
  'namegate/client has types that stand alone, and refuse wrong requests',
  { skip },
  async () => {
    const head = "import { connect } from 'namegate/client'\n"
    const good = `const { value } = await connect('/x').request('GET /v1/status', { query: { timeout: 1 } })
value.restart?.phase satisfies 'pairs' | 'claims' | 'grace' | 'leaving' | 'done' | undefined
`
    write('good.ts', head + good)
    assert.equal(await compile('good.ts', []), '')
    const wrong: readonly (readonly [code: string, reason: string])[] = [
      ["await connect().request('GET /v1/nothing')", 'no such path'],
      ["await connect().request('GET /v1/flows')", 'lines are no single value'],
      ["connect().rows('GET /v1/status')", 'a single value has no rows'],
      ["await connect().request('PUT /v1/resources/{name}', { path: { name: 'a' } })", 'no body'],
      ["await connect().request('POST /v1/mode', { body: { mode: 'off' } })", 'no such mode'],
    ]
    write('wrong.ts', head + wrong.map(([code]) => `${code}\n`).join(''))
    const said = await compile('wrong.ts', [])
    for (const [i, [, reason]] of wrong.entries()) {
      assert.ok(said.includes(`wrong.ts(${i + 2},`), `${reason}: ${said}`)
    }
  },
)

test('docs/library.md begins with a program that compiles', { skip }, async () => {
  write('first.ts', examples().get('check') ?? '')
  assert.equal(await compile('first.ts', ['node']), '')
})
