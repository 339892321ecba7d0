// Wrong arguments and missing files, for every command: exit code 2, with the reason on stderr, before any connection. The socket that the
// commands get accepts connections, counts them and never answers.

import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { after, before, test } from 'node:test'
import { EXIT_UNAVAILABLE, EXIT_USAGE } from '../../src/cli/command.ts'
import { COMMANDS, findCommand } from '../../src/cli/commands.ts'
import { InvalidInputError, messageOf, UsageError } from '../../src/core/errors.ts'
import { policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder } from '../support/nodes/daemon-process.ts'

const folder = new DaemonFolder({
  files: {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': 'endpoints: []\n',
    'config/namegate.yaml': 'admin: { socket: ../silent.sock }\n',
  },
})
let silent: Server
let visits = 0

const home = process.cwd()

before(async () => {
  process.chdir(folder.path)
  silent = createServer((socket) => {
    visits++
    socket.resume()
  })
  await new Promise<void>((done) => silent.listen(folder.in('silent.sock'), done))
})

after(() => {
  process.chdir(home)
  silent.close()
  folder.remove()
})

/** Runs the line as src/cli/main.ts does, but inside the test. */
async function namegate(line: string): Promise<{ readonly code: number; readonly text: string }> {
  let text = ''
  const write = (more: string): void => void (text += more)
  try {
    const { command, args } = findCommand(line.split(' '))
    const code = await command(args, { stdout: write, stderr: write })
    return { code, text }
  } catch (error) {
    const isTheirs = error instanceof InvalidInputError || error instanceof UsageError
    return { code: isTheirs ? EXIT_USAGE : EXIT_UNAVAILABLE, text: `${text}${messageOf(error)}` }
  }
}

const WRONG: readonly (readonly [line: string, reason: string])[] = [
  ['run extra', 'run takes no argument'],
  ['up', 'a workload is missing'],
  ['up box --allow a.b', 'the workload has no option'],
  ['up --netns a --cgroup b --audit', 'one workload only'],
  ['up --netns box', 'nothing is allowed, and nothing is observed'],
  ['up --netns box --allow a..b', 'no pattern'],
  ['up --netns box --allow https://a.b/c', 'a URL'],
  ['up --netns box --allow-file names.txt', 'not the name of an allow-list'],
  ['up --netns box --allow-file missing.allow', 'the file is missing'],
  ['up --netns box --policy missing', 'the same of policies'],
  ['up --netns box --audit --upstream dns.example', 'no address'],
  ['up --netns box --audit --address 10.0.0.1', 'an option of --interface'],
  ['up --interface a --audit --address 10.0.0', 'no address'],
  ['up --netns box --audit --force', '--force is for --write'],
  ['init extra', 'init takes no argument'],
  ['exec', 'a command is missing'],
  ['exec --allow a..b -- true', 'no pattern'],
  ['doctor extra', 'doctor takes no argument'],
  ['status extra', 'status takes no argument'],
  ['status --redy', 'no such option'],
  ['status -o yaml', 'json is all there is'],
  ['get', 'a resource is missing'],
  ['get endpoint', 'no such resource'],
  ['get names more', 'one resource only'],
  ['flows extra', 'flows takes no argument'],
  ['flows --since yesterday', 'no duration'],
  ['flows --verdict maybe', 'no such verdict'],
  ['flows --kept --verdict maybe', 'the same of kept flows'],
  ['flows --last few', 'no number'],
  ['flows --port 53 --verdict denied', 'no flow can match'],
  ['flows --not', 'a filter is missing'],
  ['flows --columns tme', 'no such column'],
  ['explain 1.1.1.1', 'the port of an address is missing'],
  ['explain a.x:443 --port 80', 'two ports'],
  ['explain --as shop', 'a question is missing'],
  ['page extra', 'page takes no argument'],
  ['page --port web', 'no port'],
  ['page --port 65536', 'the same'],
  ['top extra', 'top takes no argument'],
  ['top --window x', 'no duration'],
  ['ask', 'a name is missing'],
  ['ask a..b', 'no name'],
  ['ask a.b NOTYPE', 'no type'],
  ['ask a.b --server nowhere', 'no address with port'],
  ['ask a.b --as shop --server nowhere', 'the same in the name of an endpoint'],
  ['audit', 'on, off or reset is missing'],
  ['audit on', 'a scope is missing'],
  ['audit off', 'a scope is missing'],
  ['audit reset', 'a scope is missing'],
  ['audit on --all', '--all is for reset'],
  ['audit on --node --endpoint a', 'two scopes'],
  ['audit on --selector app', 'no KEY=VALUE'],
  ['audit maybe --node', 'no such setting'],
  ['kubernetes', 'accept is missing'],
  ['kubernetes refuse', 'no such action'],
  ['resource set', 'a name is missing'],
  ['resource set vm', 'an address is missing'],
  ['resource set vm --address 1.2.3', 'no address'],
  ['resource set vm --address 1.2.3.4 --ttl soon', 'no duration'],
  ['resource set vm --address 1.2.3.4 --label app', 'no KEY=VALUE'],
  ['resource set vm --address 1.2.3.4 --label cidr:x=y', 'a source that is not for labels'],
  ['resource set v!m --address 1.2.3.4', 'no name'],
  ['resource remove vm --ttl 1h', 'an option of set'],
  ['datapath', 'a verb is missing'],
  ['datapath verify extra', 'verify takes no argument'],
  ['datapath mode', 'a mode is missing'],
  ['datapath mode off', 'no such mode'],
  ['datapath mode bypass extra', 'one mode only'],
  ['intercept', 'a verb is missing'],
  ['intercept up --iptables', 'an option of show'],
  ['intercept show --user root', 'no number'],
  ['match *.a', 'a name is missing'],
  ['policy', 'a verb is missing'],
  ['policy check', 'a path is missing'],
  ['policy lint', 'a path is missing'],
  ['policy explain --labels a=b --ask a.b', 'policies are missing'],
  ['policy explain --policies policy.yaml --ask a.b', 'labels are missing'],
  ['policy explain --policies policy.yaml --labels a=b', 'a question is missing'],
  ['policy test', 'a file is missing'],
  ['policy suggest --collapse 1', 'no number from 2 on'],
  ['policy suggest --format xml', 'no such format'],
  ['policy suggest -o json --format allow-list', 'two formats'],
  ['policy suggest --labels ,', 'no KEY=VALUE'],
  ['policy suggest --node here', 'no address'],
  ['policy wait --revision x', 'no number'],
  ['policy wait --timeout x', 'no duration'],
  ['policy wait extra', 'wait takes no argument'],
  ['policy schema extra', 'schema takes no argument'],
  ['state show', 'a file is missing'],
  ['state look file', 'no such verb'],
  ['config', 'a verb is missing'],
  ['config check a b', 'one file only'],
  ['cni', 'a verb is missing'],
  ['cni install extra', 'install takes no argument'],
  ['cni install --socket admin.sock', 'a relative path'],
  ['cni install --on-failure open', 'no such choice'],
  ['cni install --timeout-seconds 0', 'no time'],
  ['cni check --keep-program', 'an option of uninstall'],
  ['version extra', 'version takes no argument'],
  ['completion tcsh', 'bash, zsh and fish have a script'],
  ['help nothing', 'no such command'],
]

test('namegate up names an unknown interface before a missing --allow', async () => {
  const { code, text } = await namegate('up --interface no-such-if')
  assert.equal(code, 2)
  assert.match(text, /^namegate: --interface "no-such-if": there is no such interface, found /)
})

const MISSING: readonly (readonly [line: string, what: string])[] = [
  ['run --config none.yaml', 'the configuration'],
  ['exec --policy none.yaml -- true', 'a policy'],
  ['status --config none.yaml', 'the configuration'],
  ['get names --config none.yaml', 'the configuration'],
  ['flows --config none.yaml', 'the configuration'],
  ['ask a.b --config none.yaml', 'the configuration'],
  ['audit on --node --config none.yaml', 'the configuration'],
  ['resource remove vm --config none.yaml', 'the configuration'],
  ['datapath verify --config none.yaml', 'the configuration'],
  ['datapath mode bypass --config none.yaml', 'the configuration'],
  ['datapath detach --config none.yaml', 'the configuration'],
  ['datapath close --config none.yaml', 'the configuration'],
  ['intercept up --config none.yaml', 'the configuration'],
  ['intercept show --config none.yaml', 'the configuration'],
  ['intercept down --config none.yaml', 'the configuration'],
  ['policy check none.yaml', 'a policy'],
  ['policy check policy.yaml none.yaml', 'one of two policies'],
  ['policy check policy.yaml --config none.yaml', 'the configuration'],
  ['policy lint none.yaml', 'a policy'],
  ['policy lint policy.yaml --endpoints none.yaml', 'endpoints'],
  ['policy lint policy.yaml --chains none.yaml', 'chains'],
  ['policy explain --policies none.yaml --labels a=b --ask a.b', 'a policy'],
  ['policy test none.yaml', 'expectations'],
  ['policy suggest --flows none.jsonl', 'flows'],
  ['policy suggest --policies none.yaml', 'a policy'],
  ['policy wait --config none.yaml', 'the configuration'],
  ['state show none', 'a checkpoint'],
  ['state check none', 'a checkpoint'],
  ['config check none.yaml', 'the configuration'],
]

for (const [kind, rows] of [
  ['a wrong use', WRONG],
  ['a missing file', MISSING],
] as const) {
  for (const [line, why] of rows) {
    test(`namegate ${line} ends with 2 at once: ${kind}: ${why}`, async () => {
      visits = 0
      const { code, text } = await namegate(line)
      assert.equal(code, 2, text)
      assert.notEqual(text, '')
      assert.equal(visits, 0, 'the daemon was not contacted')
    })
  }
}

/** Options of one command that people give to another, and the option that means the same there. */
const MEANT: readonly (readonly [line: string, option: string])[] = [
  ['explain a.x --endpoint shop', '--as'],
  ['explain a.x --netns box', '--as'],
  ['ask a.x --endpoint shop', '--as'],
  ['ask a.x --upstream 9.9.9.9:53', '--server'],
  ['flows --as shop', '--endpoint'],
  ['flows --netns box', '--endpoint'],
  ['get names --as shop', '--endpoint'],
  ['audit on --as shop', '--endpoint'],
  ['audit on --labels app=shop', '--selector'],
  ['policy suggest --selector app=shop', '--labels'],
  ['up --endpoint box --audit', '--netns'],
  ['flows --watch', '--follow'],
  ['get names --follow', '--watch'],
  ['top --since 60s', '--window'],
  ['exec --alow a.b -- true', '--allow'],
  ['exec --server 9.9.9.9 -- true', '--upstream'],
]

for (const [line, option] of MEANT) {
  test(`namegate ${line} suggests ${option}`, async () => {
    const { code, text } = await namegate(line)
    assert.equal(code, 2)
    assert.match(text, new RegExp(`; did you mean ${option}\\?\n`))
  })
}

/** What the error says about the word that was probably meant, or about what to write instead. */
const REMEDIES: readonly (readonly [line: string, said: RegExp])[] = [
  ['audit of --node', /; did you mean off\?\n/],
  ['config chekc', /; did you mean check\?\n/],
  ['resource sett vm', /; did you mean set\?\n/],
  ['get endpoint', /; did you mean endpoints\?\n/],
  ['completion zhs', /; did you mean zsh\?\n/],
  ['help policy sugest', /; did you mean suggest\?\n/],
  ['ask a.b AAA', /unknown type "AAA"; did you mean AAAA\?\n/],
  ['flows --columns list', /"list"; did you mean last\? The columns are time, last, number, /],
  ['flows --columns nothing', /"nothing"\. The columns are time, last, number, /],
  ['flows --last few', /--last: found "few", expected a number from 1 to 999999999, or 0/],
  ['flows --last 9999999999', /--last: found "9999999999", expected a number from 1 to 99/],
  ['flows --last 0', /--last: found "0", expected .*, or 0 with --follow for new flows alone\n/],
  ['top --rows 0', /--rows: found "0", expected a number from 1 to 1000\n/],
  ['explain a.x --as shop --name b.x --port 443', /explain takes NAME or --name NAME/],
  [
    'explain --as shop --ask a.x --port 443',
    /--port: is for a connection: write --name in place of --ask\n/,
  ],
  ['explain --as shop --protocol TCP --port 443', /--protocol: .* question for a name/],
  ['explain --as shop --address 10.0.0.1 --port 443/GRE', /expected PORT\/PROTOCOL or ICMP/],
  ['explain', /explain needs the NAME .*, such as explain www\.example\.com or explain \S+:443\n/],
  ['ask http://a.x', /: NAME: found "http:\/\/a\.x": .* the name alone, without scheme and path;/],
  ['ask a.x:53', /: NAME: found "a\.x:53": character ":": write the name alone, without port;/],
  [
    'up --netns box --allow 198.51.100.256',
    /"198\.51\.100\.256", which looks like an address, and/,
  ],
  ['exec --allow 10.0.0.300/24 -- true', /"10\.0\.0\.300", which looks like an address, and/],
  ['ask 198.51.100.256', /: NAME: found "198\.51\.100\.256", which looks like an address, and/],
  ['ask 198.51.100.7', /, which is an address: write explain 198\.51\.100\.7 --port 443\n/],
  ['explain 1.2.3:443', /: NAME: found "1\.2\.3", which looks like an address, and is none/],
  ['explain --name 1.2.3 --port 443', /: --name: found "1\.2\.3", which looks like an address/],
  ['explain --name 10.0.0.1 --port 443', /: --name: found .* is an address: write --address\n/],
  ['explain --port 443', /explain needs the NAME /],
  ['explain a.x:99999', /: P of a\.x:99999: found "99999", expected .* PORT is 1 to 65535/],
  ['explain a.x:0', /: P of a\.x:0: found "0", expected PORT\/PROTOCOL or ICMP/],
  ['explain a.x:http', /: P of a\.x:http: found "http", expected PORT\/PROTOCOL or ICMP/],
  ['explain a.x:', /: P of a\.x:: found "", expected PORT\/PROTOCOL or ICMP/],
  ['explain a.x --address 10.0.0.1', /--port: found none, expected one, such as 443\/TCP/],
  [
    'explain http://a.x',
    /: NAME: found "http:\/\/a\.x": character ":": write the name alone, without scheme and path;/,
  ],
]

for (const [line, said] of REMEDIES) {
  test(`namegate ${line} says what to write instead`, async () => {
    const { code, text } = await namegate(line)
    assert.equal(code, 2)
    assert.match(text, said)
  })
}

test('Every command has a row of wrong use', () => {
  const tried = new Set(WRONG.map(([line]) => line.split(' ')[0]))
  assert.deepEqual(
    COMMANDS.map(({ name }) => name).filter((name) => !tried.has(name)),
    [],
  )
})
