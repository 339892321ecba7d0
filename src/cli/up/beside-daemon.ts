// `besideDaemon` makes the error of `namegate up` on a host where another daemon already intercepts queries. One daemon can protect many
// workloads, so the error names the other daemon, its file of endpoints, and the line to add there. The function has no side effects.

import { UnavailableError } from '../../core/errors.ts'
import { matchesPattern } from '../../core/name-pattern.ts'
import type { EndpointRecord } from '../../endpoints/file.ts'
import { shellWord } from '../shell-word.ts'
import { endpointLine } from './files.ts'
import type { EndpointsText, KnownDaemon, OtherDaemon } from './other-daemon.ts'
import { isOfCgroup, unusedName, type UpEndpoint, type UpPlan } from './plan.ts'
import { addLine } from './watched-list.ts'

export function besideDaemon(plan: UpPlan, { pid, known }: OtherDaemon): UnavailableError {
  const place = known === undefined ? '' : ` (configuration ${known.config.file})`
  const process = pid === undefined ? '' : ` with pid ${pid}`
  const head = `Cannot intercept for ${plan.name}: the namegate${process}${place} already intercepts queries on this host`
  const remedies = known === undefined ? UNSEEN_FILES : remediesOf(plan, known)
  return new UnavailableError([head, ...remedies].join('\n  '))
}

/** True if the other daemon protects the workload already. */
export function protects({ known }: OtherDaemon, plan: UpPlan): boolean {
  return known !== undefined && endpointOf(plan, known) !== undefined
}

/** The endpoint of the other daemon at a place of the workload on this host. */
function endpointOf(plan: UpPlan, known: KnownDaemon): EndpointRecord | undefined {
  const places = placesOf(plan)
  return known.endpoints?.records.find((record) => places.some(isAt(record)))
}

function placesOf({ namespace, endpoints, outer = [] }: UpPlan): readonly Place[] {
  return namespace === undefined ? endpoints.value : outer.map((name) => ({ interface: { name } }))
}

interface Place {
  readonly interface?: { readonly name: string }
  readonly cgroup?: string
}

const UNSEEN_FILES = [
  "End it, or add the workload to its file of endpoints. Its configuration cannot be read from here ('namegate status' shows if it runs).",
]

function remediesOf(plan: UpPlan, known: KnownDaemon): readonly string[] {
  const { config, endpoints } = known
  const there = endpointOf(plan, known)
  if (there !== undefined) {
    return [
      `That daemon protects it already: endpoint ${there.name} of ${there.position.file}.`,
      ...policiesOf(known),
    ]
  }
  if (isOfCgroup(plan) && config.datapath.kind !== 'ebpf') {
    return [
      `That daemon cannot protect a cgroup: only the eBPF datapath can, and it has ${config.datapath.kind}.`,
      'Put the processes into a network namespace, and give --netns.',
    ]
  }
  const listener = missingListener(plan, known)
  if (listener === undefined) {
    return [
      'That daemon can protect it too. This command adds it, within a second:',
      ...adding(plan, endpoints),
      ...policiesOf(known),
    ]
  }
  if (!known.isKept) {
    return [
      `That daemon has no listener for it, and up makes a listener for one kind of workload only.`,
      'One daemon can protect both kinds with a configuration of your own: docs/install.md, "Several workloads".',
    ]
  }
  return [
    `That daemon has no listener for it. Add this line to the listeners of its configuration, and start it again:`,
    `  - ${listener}`,
    'Then this command adds the workload:',
    ...adding(plan, endpoints),
    ...policiesOf(known),
  ]
}

/** The listener that the other daemon needs for the workload. Undefined if it has one. */
function missingListener(
  { endpoints }: UpPlan,
  { config: { listeners } }: KnownDaemon,
): string | undefined {
  const port = Math.max(...listeners.map((each) => each.port)) + 1
  const hasFor = ({ cgroup, interface: nic }: UpEndpoint): boolean =>
    cgroup === undefined
      ? listeners.some(({ mode, interfaces }) => mode === 'tproxy' && covers(interfaces, nic?.name))
      : listeners.some(({ mode }) => mode === 'redirect')
  if (endpoints.value.every(hasFor)) return undefined
  const names = endpoints.value.map((each) => each.interface?.name ?? '').join(', ')
  const isLimited = listeners.some(({ mode }) => mode === 'tproxy')
  if (isOfCgroup({ endpoints })) return `{ port: ${port}, mode: redirect, processes: cgroups }`
  return `{ port: ${port}, mode: tproxy${isLimited ? `, interfaces: [${names}]` : ''} }`
}

/** True if a listener with these interfaces receives the queries that arrive at `name`. Without interfaces, those of all endpoints. */
function covers(interfaces: readonly string[], name = ''): boolean {
  return interfaces.length === 0 || interfaces.some((each) => matchesPattern(each, name))
}

/** The command that adds the endpoints, or where to write them. */
function adding(plan: UpPlan, file: EndpointsText | undefined): readonly string[] {
  const used = new Set(file?.records.map(({ name }) => name))
  const lines = plan.endpoints.value.map((each) => {
    const name = unusedName(each.name, used)
    used.add(name)
    return endpointLine(plan.name, { ...each, name })
  })
  if (file === undefined) {
    const where =
      'Its configuration names no file of endpoints: add one under endpoints.files, with'
    return [where, 'endpoints:', ...lines.map((line) => `  - ${line}`)]
  }
  const indent = blockIndent(file.text)
  if (indent === undefined) {
    return [`  inside the brackets of ${file.file}, add:`, ...lines.map((line) => `  ${line},`)]
  }
  return lines.map((line) => `  echo ${shellWord(`${indent}- ${line}`)} >> ${shellWord(file.file)}`)
}

/** The indentation of the last item if a line can be appended to the list. Undefined for a list in brackets or with an open line. */
function blockIndent(text: string): string | undefined {
  const isBlock = /^endpoints:[ \t]*(?:#.*)?$/m.test(text) && text.endsWith('\n')
  return isBlock ? /^([ \t]*)-[ \t]/m.exec(text)?.[1] : undefined
}

function policiesOf({ list }: KnownDaemon): readonly string[] {
  const own = 'The policies of that daemon apply to it, not the options of this command.'
  if (list === undefined) return [own]
  const more = addLine('NAME', { file: list, isMade: true })
  return [own, 'A line of its list allows a name for all its workloads:', `  ${more}`]
}

/** True for an endpoint at the same interface or cgroup. */
function isAt({ hook }: EndpointRecord): (place: Place) => boolean {
  return ({ interface: nic, cgroup }) =>
    hook.kind === 'interface'
      ? hook.name === nic?.name
      : hook.kind === 'cgroup' && hook.path === cgroup
}
