// `runIntercept` runs `namegate intercept up|down|show`. The command adds, removes or prints the rules that bring queries to the listeners,
// with or without a running daemon. `down` removes the rules that it finds in the kernel. `down` reads only the pin path from the config,
// so it works with a config that has faults elsewhere.

import { readlinkSync } from 'node:fs'
import type { Status } from '../../client/api-types.ts'
import { InvalidInputError, UnavailableError, UsageError } from '../../core/errors.ts'
import { formatAddress } from '../../core/ip.ts'
import type { Config } from '../../config/config.ts'
import { ownAddresses, systemResolvers } from '../../config/machine.ts'
import { resolveUpstreams } from '../../config/upstreams.ts'
import { iptablesText } from '../../intercept/iptables-text.ts'
import { removeFreeLocks, withInterceptLock } from '../../state/lock.ts'
import { installScript, TABLE } from '../../intercept/nft-script.ts'
import type { InterceptPlan } from '../../intercept/plan.ts'
import { routingSteps } from '../../intercept/routing.ts'
import { aboutOf, type Rules } from '../../intercept/rules.ts'
import type { InForce } from '../../intercept/ruleset.ts'
import { loadPosix } from '../../native/native.ts'
import { program } from '../program.ts'
import { configuredPlaces, makeRules, pinnedFlags, planOf } from '../../daemon/open-interception.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { findConfigFile, namedConfigFile, readConfig } from '../config-file.ts'
import { openClient } from '../client.ts'
import { textOf, type PartOf } from '../fields.ts'
import { readPinPath } from '../pin-path.ts'

const VERBS = ['up', 'down', 'show'] as const

export async function runIntercept(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [word, ...rest] = read.positionals
  const verb = VERBS.find((each) => each === word)
  if (verb === undefined || rest.length > 0) {
    return read.wrong('intercept needs up, down or show')
  }
  if (read.flags.has('iptables') && verb !== 'show') {
    return read.wrong('--iptables is only for show')
  }
  const uid = userOf(read)
  switch (verb) {
    case 'up':
      return await up(read, uid, output)
    case 'down':
      return await down(read, output)
    case 'show':
      return await show(read, uid, output)
  }
}

async function up(read: ParsedArguments, uid: number, output: CommandOutput): Promise<number> {
  const { plan, config } = await readPlan(read.texts.get('config'), uid)
  const rules = rulesOf(config.datapath.kind === 'ebpf' ? config.datapath.pinPath : undefined)
  const endpoints = configuredPlaces(config.endpoints.files)
  const notes = await alone(async () => await rules.up(plan, endpoints))
  for (const note of notes) output.stderr(`namegate: ${note}\n`)
  output.stdout(`intercepted: ${wordsOf(plan)}\n`)
  return EXIT_OK
}

async function down(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const file = findConfigFile(read.texts.get('config'))
  const rules = rulesOf(file === undefined ? undefined : readPinPath(file))
  const { removed, notes } = await alone(async () => await rules.down())
  for (const note of notes) output.stderr(`namegate: ${note}\n`)
  output.stdout(removed ? 'not intercepted any more\n' : nothingFound())
  return removed ? EXIT_OK : EXIT_NEGATIVE
}

/** Says where `down` looked. The rules of a daemon can be in the network namespace of its workload. */
function nothingFound(): string {
  const namespace = readlinkSync('/proc/self/ns/net')
  return (
    `nothing was intercepted: the network namespace ${namespace} of this command has no table ${TABLE} (inet or bridge) ` +
    'and no routing of namegate. For the rules in another namespace: ' +
    `nsenter --net=/run/netns/NAME ${program()} intercept down\n`
  )
}

async function show(read: ParsedArguments, uid: number, output: CommandOutput): Promise<number> {
  const daemon = await daemonSays(read)
  const named = namedConfigFile(read.texts.get('config'))
  const { plan, config } = await readPlan(named ?? daemon?.config, uid)
  const rules = rulesOf(undefined)
  const endpoints = configuredPlaces(config.endpoints.files)
  const { parts: names, cgroups } = await rules.targets(plan, endpoints)
  if (read.flags.has('iptables')) {
    if (plan.redirect?.ofCgroups === true) {
      throw new UsageError(
        '--iptables: found a listener with processes: cgroups, which needs nftables',
      )
    }
    output.stdout(iptablesText(plan, names))
    return EXIT_OK
  }
  const found = await lookedUp(rules)
  const about = aboutOf(plan)
  const amiss = found === 'unknown' ? [] : await amissIn(rules, plan, found)
  const isSo = found === 'unknown' ? undefined : found?.about === about && amiss.length === 0
  const isInForce = daemon === undefined ? isSo : daemon.isInForce
  const script = installScript({ plan, names, cgroups, about, withBridge: true })
  if (read.texts.has('output')) {
    output.stdout(toJson(rowsOf(plan, isInForce, found === 'unknown' ? undefined : found)))
    return EXIT_OK
  }
  const own = stateOf(isSo, found === 'unknown' ? undefined : found, about, amiss)
  const isAgreed = daemon?.isInForce === isSo
  const state =
    daemon === undefined
      ? own
      : `${daemon.text}${isAgreed && isSo ? '' : fromHere(daemon.pid, own)}`
  const commands = routingSteps(plan).map(({ add }) => `ip ${add.join(' ')}\n`)
  const notes = plan.notes.map((note) => `# ${note}\n`)
  const isOfDaemon = named === undefined && daemon?.config !== undefined
  const whose = isOfDaemon ? `# of the configuration ${config.file} of the daemon\n` : ''
  output.stdout(
    `# ${wordsOf(plan)}: ${state}\n${whose}${notes.join('')}${commands.join('')}nft -f - <<'END'\n${script}END\n`,
  )
  return EXIT_OK
}

/** What this command sees of the rules: nothing of those of a daemon in another network namespace. */
function fromHere(pid: number, own: string): string {
  return isElsewhere(pid) ? '; it runs in another network namespace' : `; seen from here: ${own}`
}

function isElsewhere(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`) !== readlinkSync('/proc/self/ns/net')
  } catch {
    // The process of another user, or of a container.
    return false
  }
}

/** How long `show` waits for the daemon, in milliseconds. If the daemon hangs, `show` prints only what it finds in the kernel. */
const ASK_MS = 1000

/** What the running daemon reports. */
interface Said {
  readonly text: string
  readonly isInForce: boolean
  readonly pid: number
  /** Its configuration. Undefined if it has the built-in defaults. */
  readonly config: string | undefined
}

/** Returns what the running daemon reports about interception. Undefined if no daemon answers. Throws if several run and none is chosen. */
async function daemonSays(read: ParsedArguments): Promise<Said | undefined> {
  const client = await openClient(read)
  try {
    const { value } = await client.request('GET /v1/status', { timeoutMs: ASK_MS })
    const { interception, intercepting, pid, config }: PartOf<Status> = value
    const what = typeof interception === 'string' ? interception : 'it has no transparent listener'
    const text = `${what} (according to the daemon, pid ${textOf(pid)})`
    const file = typeof config === 'string' ? config : undefined
    return { text, isInForce: intercepting === true, pid: Number(pid), config: file }
  } catch (error) {
    if (error instanceof UnavailableError) return undefined
    throw error
  }
}

/** Returns the rules in the kernel: undefined if there are none, `unknown` if they cannot be read. */
async function lookedUp(rules: Rules): Promise<InForce | undefined | 'unknown'> {
  try {
    return await rules.inForce()
  } catch (error) {
    if (error instanceof UnavailableError) return 'unknown'
    throw error
  }
}

/** Returns what is damaged or missing in the rules and routes, compared with the plan. */
async function amissIn(
  rules: Rules,
  plan: InterceptPlan,
  found: InForce | undefined,
): Promise<readonly string[]> {
  const missing = await rules.missingRouting(plan)
  return [...(found?.damage ?? []), ...missing.map((each) => `${each} missing`)]
}

function stateOf(
  isInForce: boolean | undefined,
  found: InForce | undefined,
  about: string,
  amiss: readonly string[],
): string {
  if (isInForce === undefined) return 'only root can see whether it is in force'
  if (isInForce) return 'in force'
  if (found === undefined) return 'not in force'
  if (found.about !== about) return 'another plan is in force'
  return `not in force: ${amiss.join(', ')}`
}

/**
 * Returns the config of the file, or of the one found by its place, and its plan. Throws InvalidInputError without a transparent
 * listener.
 */
async function readPlan(
  file: string | undefined,
  uid: number,
): Promise<{ readonly plan: InterceptPlan; readonly config: Config }> {
  const config = await readConfig(file)
  const plan = planOf(config, serversOf(config), uid)
  if (plan !== undefined) return { plan, config }
  const position = config.listeners[0]?.position ?? { file: config.file, line: 1, column: 1 }
  const message =
    'listeners: found none of mode tproxy or redirect, expected one: nothing to intercept'
  throw new InvalidInputError([{ position, message }])
}

function serversOf(config: Config) {
  const { servers } = config.upstreams
  const { addresses, faults } = resolveUpstreams(
    servers,
    config.listeners,
    ownAddresses(),
    systemResolvers,
  )
  if (faults.length > 0) throw new InvalidInputError(faults)
  return addresses.map(({ family, octets, port }) => {
    return { family, address: formatAddress(family, octets), port }
  })
}

function userOf(read: ParsedArguments): number {
  const text = read.texts.get('user')
  if (text === undefined) return process.geteuid?.() ?? 0
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new UsageError(
    `--user: found ${text}, expected the number of a user ('id -u NAME' prints it)`,
  )
}

function rulesOf(pinPath: string | undefined): Rules {
  return makeRules(pinnedFlags(pinPath))
}

/** Does `work` while it holds the lock of interception. Waiting for the lock blocks the thread, because a command has no other work. */
async function alone<T>(work: () => Promise<T>): Promise<T> {
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  const pause = async (ms: number): Promise<void> => {
    await Promise.resolve(Atomics.wait(sleeper, 0, 0, ms))
  }
  const posix = loadPosix()
  try {
    return await withInterceptLock(posix, pause, work)
  } finally {
    removeFreeLocks(posix)
  }
}

/** Returns a text such as `tproxy to port 10053 from lxc*, redirect to port 5300`. */
function wordsOf({ tproxy, redirect }: InterceptPlan): string {
  const parts = tproxy.map(({ targets, names, beginnings, ofEndpoints }) => {
    const from = [...names, ...beginnings.map((each) => `${each}*`)]
    const whom = ofEndpoints ? 'the interfaces of endpoints' : from.join(' ')
    return `tproxy to port ${targets[4]?.port ?? targets[6]?.port} from ${whom}`
  })
  const { targets } = redirect ?? {}
  const whose = redirect?.ofCgroups === true ? ' from the cgroups of endpoints' : ''
  const turned =
    targets === undefined
      ? []
      : [`redirect to port ${targets[4]?.port ?? targets[6]?.port}${whose}`]
  return [...parts, ...turned].join(', ')
}

function rowsOf(
  { tproxy, redirect, mark, table }: InterceptPlan,
  isInForce: boolean | undefined,
  found: InForce | undefined,
): readonly object[] {
  const common = { mark, table, inForce: isInForce ?? null, packets: found?.packets ?? null }
  const familiesOf = (targets: InterceptPlan['tproxy'][number]['targets']): readonly number[] =>
    [4, 6].filter((family) => targets[family === 4 ? 4 : 6] !== undefined)
  const rows: object[] = tproxy.map(({ targets, names, beginnings, ofEndpoints }, i) => ({
    mode: 'tproxy',
    port: targets[4]?.port ?? targets[6]?.port,
    families: familiesOf(targets),
    interfaces: [...names, ...beginnings.map((each) => `${each}*`)],
    ofEndpoints,
    taken: found?.sets.get(`inet interfaces${i}`) ?? [],
    ...common,
  }))
  if (redirect !== undefined) {
    const { targets, ofCgroups, uid } = redirect
    const port = targets[4]?.port ?? targets[6]?.port
    rows.push({ mode: 'redirect', port, families: familiesOf(targets), ofCgroups, uid, ...common })
  }
  return rows
}
