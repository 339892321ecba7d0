// npm run bench:peers: compares namegate with dnsdist, unbound and dnsmasq; see README.md beside this file. Turns are interleaved
// (all proxies under one load, then the next load, then the next round). Each turn has the machine to itself, and each figure is
// the median over the rounds. Exit code: 0; 1 if a criterion is over its limit with --strict, or if a run failed; 2 wrong usage;
// 3 if it cannot run here.

import { cpus, release as kernelRelease } from 'node:os'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { canUseLab } from '../../support/labs/lab.ts'
import { criteriaOf, isOver, soakCriterion, type Criterion } from './criteria.ts'
import { runProfile, runSoak } from './extras.ts'
import { mkDirect, mkDnsdist, mkDnsmasq, mkUnbound } from './forwarders.ts'
import { medianFigures, type Figures } from './load-result.ts'
import { mkNamegate } from './namegate.ts'
import { parseOptions, type Options } from './options.ts'
import type { LeftOut, Subject } from './proxy.ts'
import { copyRelease, type Release } from './release.ts'
import { formatReport, type Report, type Row } from './report.ts'
import { LOAD_CPU, PROXY_CPU, Stage } from './stage.ts'
import { LOADS, LOADS_OF, SUBJECTS, type LoadName, type SubjectName } from './subjects.ts'
import { PACES, runTurn, type Times, type TurnResult } from './turn.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const CACHE = fileURLToPath(new URL('../../../build/peers', import.meta.url))
const FULL: Times = { warmUp: 2, paced: 4, peak: 5 }
const QUICK: Times = { warmUp: 1, paced: 1, peak: 1 }

interface Turn extends TurnResult {
  readonly subject: SubjectName
  readonly load: LoadName
}

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args)
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`)
    return 2
  }
  const refusal = canUseLab()
  if (refusal !== undefined) {
    process.stderr.write(`bench:peers: ${refusal}\n`)
    return 3
  }
  const release = copyRelease(ROOT)
  const stage = new Stage(CACHE, options.priority)
  try {
    await stage.startUpstream()
    return await runAll(stage, release, options)
  } finally {
    await stage.close()
    rmSync(release.folder, { recursive: true, force: true })
  }
}

async function runAll(stage: Stage, release: Release, options: Options): Promise<number> {
  const made = await makeSubjects(stage, release, options)
  const subjects = made.filter((each) => 'start' in each)
  const leftOut = made.flatMap((each): [SubjectName, string][] =>
    'reason' in each ? [[each.name, each.reason]] : [],
  )
  const { turns, failures } = await runRounds(stage, subjects, options)
  const rows = rowsOf(turns)
  const at = (subject: SubjectName, load: LoadName, pace: Row['pace']): Figures | undefined =>
    rows.find((row) => row.subject === subject && row.load === load && row.pace === pace)?.figures
  const soaks = await soakAll(stage, subjects, rows, options)
  const criteria = [...criteriaOf(at), ...soaks]
  const settings = subjects.map(({ name, settings: text }) => [name, text] as const)
  const report: Report = {
    head: headOf(release, options),
    settings,
    leftOut: [...leftOut, ...failures],
    rows,
    criteria,
  }
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : formatReport(report))
  if (options.profile) {
    for (const load of ['steady', 'new'] as const) {
      const make = async (flags: readonly string[]) =>
        orThrow(await mkNamegate(stage, release, 'namegate', flags))
      const text = await runProfile(stage, make, load, options.quick ? 2 : 8)
      ;(options.json ? process.stderr : process.stdout).write(`\n${text}`)
    }
  }
  const failed = [...failures.keys()].some((name) => name !== 'namegate-tproxy')
  return failed || (options.strict && criteria.some(isOver)) ? 1 : 0
}

function orThrow(subject: Subject | LeftOut): Subject {
  if ('reason' in subject) throw new Error(subject.reason)
  return subject
}

async function makeSubjects(
  stage: Stage,
  release: Release,
  { only }: Options,
): Promise<readonly (Subject | LeftOut)[]> {
  const made: (Subject | LeftOut)[] = []
  for (const name of SUBJECTS) {
    if (only.length > 0 && name !== 'direct' && !only.includes(name)) continue
    try {
      made.push(await makeSubject(stage, release, name))
    } catch (error) {
      made.push({ name, reason: error instanceof Error ? error.message : String(error) })
    }
  }
  return made
}

async function makeSubject(
  stage: Stage,
  release: Release,
  name: SubjectName,
): Promise<Subject | LeftOut> {
  switch (name) {
    case 'direct':
      return mkDirect()
    case 'dnsdist':
      return mkDnsdist(stage, CACHE)
    case 'unbound':
      return mkUnbound(stage, CACHE)
    case 'dnsmasq':
    case 'dnsmasq-nftset':
      return mkDnsmasq(stage, CACHE, name === 'dnsmasq-nftset')
    case 'namegate':
    case 'namegate-default-bounds':
    case 'namegate-tproxy':
    case 'namegate-nftables':
      return await mkNamegate(stage, release, name)
  }
}

async function runRounds(
  stage: Stage,
  subjects: readonly Subject[],
  options: Options,
): Promise<{
  readonly turns: readonly Turn[]
  readonly failures: ReadonlyMap<SubjectName, string>
}> {
  const turns: Turn[] = []
  const failures = new Map<SubjectName, string>()
  for (let round = 1; round <= options.rounds; round++) {
    for (const load of LOADS) {
      for (const subject of subjects) {
        if (!LOADS_OF[subject.name].includes(load)) continue
        process.stderr.write(`round ${round}: ${load}: ${subject.name}\n`)
        try {
          const result = await runTurn(stage, subject, load, options.quick ? QUICK : FULL)
          turns.push({ ...result, subject: subject.name, load })
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error)
          const why = subject.name === 'namegate-tproxy' ? 'not built, or broken' : 'failed'
          failures.set(subject.name, `${why}: ${load}: ${reason}`)
          process.stderr.write(`${reason}\n`)
        }
      }
    }
  }
  return { turns, failures }
}

/** Medians, in the order of loads, paces and subjects. */
function rowsOf(turns: readonly Turn[]): readonly Row[] {
  return LOADS.flatMap((load) =>
    PACES.flatMap((pace) =>
      SUBJECTS.flatMap((subject): readonly Row[] => {
        const own = turns.filter((turn) => turn.load === load && turn.subject === subject)
        const rounds = own.flatMap(({ rows }) => rows.get(pace) ?? [])
        if (rounds.length === 0) return []
        const qps = rounds.map((figures) => figures.qps)
        return [
          {
            load,
            pace,
            subject,
            figures: medianFigures(rounds),
            qpsSpread: [Math.min(...qps), Math.max(...qps)],
            rounds: rounds.length,
            note: own.at(-1)?.note ?? '',
          },
        ]
      }),
    ),
  )
}

async function soakAll(
  stage: Stage,
  subjects: readonly Subject[],
  rows: readonly Row[],
  options: Options,
): Promise<readonly Criterion[]> {
  const subject = subjects.find(({ name }) => name === 'namegate')
  if (subject === undefined) return []
  const seconds = options.soak ? 600 : options.quick ? 6 : 60
  const criteria: Criterion[] = []
  for (const load of ['steady', 'new'] as const) {
    const peak = rows.find(
      (row) => row.subject === 'namegate' && row.load === load && row.pace === 'peak',
    )
    if (peak === undefined) continue
    const rate = Math.round(peak.figures.qps / 2)
    process.stderr.write(`soak: ${load} at ${rate} q/s for ${seconds} s\n`)
    const { resident, measured } = await runSoak(stage, subject, load, rate, seconds)
    const sizes = resident.map((octets) => Math.round(octets / 1e6))
    process.stderr.write(
      `soak: lost ${measured.load.lost} of ${measured.load.sent}, RSS MB ${sizes[0]} … ${sizes.at(-1)}, least ${Math.min(...sizes)}, most ${Math.max(...sizes)}\n`,
    )
    criteria.push(soakCriterion(load, resident))
  }
  return criteria
}

function headOf(release: Release, { rounds, quick, priority }: Options): readonly string[] {
  const [cpu] = cpus()
  const pinned =
    LOAD_CPU === PROXY_CPU
      ? 'one CPU for everything: nothing to judge by'
      : `the proxy alone on CPU ${PROXY_CPU}, load and upstream on CPU ${LOAD_CPU}${priority ? ', at real-time priority' : ''}`
  return [
    `bench:peers: ${release.title}`,
    `${cpus().length} x ${cpu?.model.trim() ?? 'CPU'}, Linux ${kernelRelease()}; ${pinned}`,
    `16 clients, 200 outstanding (TCP one query each: 32), no cache, unique names or ${20_000} known ones, ${rounds} rounds, medians${quick ? '; QUICK: nothing to judge by' : ''}`,
  ]
}

process.exitCode = await main(process.argv.slice(2))
