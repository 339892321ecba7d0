// The texts that `namegate up` prints when the workload is protected, and at the end. Every printed command can be pasted as it
// is: what a person should know stands before the command or behind a #.

import { join } from 'node:path'
import { allowLines, isAllowList } from '../../policy/allow-line.ts'
import { program } from '../program.ts'
import { shellWord } from '../shell-word.ts'
import { addedTo, type AddedLines } from './added-lines.ts'
import type { UpOptions } from './arguments.ts'
import { ALLOW_FILE } from './files.ts'
import { textIn } from './list-changes.ts'
import type { UpPlan } from './plan.ts'
import { addLine, type WatchedList } from './watched-list.ts'

/** Returns the warnings about lines that were added, and audit settings that were made, while a killed run ran. */
export function continued({ lines, faults }: AddedLines, hadSettings: boolean): readonly string[] {
  const without = 'to start without them, end with Ctrl-C, and start again'
  return [
    ...(lines.length === 0
      ? []
      : [
          `kept the lines that were added before the last run was killed: ${lines.join(', ')}; ${without}`,
        ]),
    ...faults.map((fault) => `left out ${fault}`),
    ...(hadSettings
      ? ['the audit settings of the run before are not kept: the command line decides about audit']
      : []),
  ]
}

/** Returns the command line that allows what was added to the list. Empty if nothing was added. */
export function nextTime({ allows, write, isForced }: UpOptions, folder: string): string {
  const { lines } = addedTo(join(folder, ALLOW_FILE), allows)
  if (lines.length === 0) return ''
  const added = lines.map((line) => `--allow ${shellWord(line)}`)
  const force = write === undefined || isForced ? [] : ['--force']
  const command = [program(), ...process.argv.slice(2).map(shellWord), ...added, ...force].join(' ')
  const saved = write === undefined ? '  (--write DIR keeps the configuration with its list)\n' : ''
  return `namegate: to allow these next time: ${command}\n${saved}`
}

interface Ready {
  readonly list: WatchedList
  readonly socket: string
  /** Since the start. */
  readonly seconds: number
  /** True while a bypass that was set by hand is in force. */
  readonly isBypassed: boolean
}

export function welcome(
  { name, mode, datapath, namespace, inside }: UpPlan,
  { isAudited, allows, policies }: UpOptions,
  { list, socket, seconds, isBypassed }: Ready,
): string {
  const what = isBypassed
    ? `${name} is not protected: the mode is bypass, as it was set by hand; ${program()} datapath mode enforce --socket ${socket} ends this`
    : isAudited
      ? `${name} is audited: everything is allowed, and what policy would refuse is printed`
      : `${name} is protected`
  const where = namespace === undefined ? '' : ', inside the namespace'
  const lines = [
    `namegate: ${what} (${mode.value}, ${datapath.value}${where}), ${seconds.toFixed(1)} s after the start. Ctrl-C ends it.`,
    '  In another terminal:',
    ...tryIt(inside, [...allows, ...policies.filter(isAllowList).flatMap(targetsOf)]),
    `  look at it:  ${program()} flows --socket ${socket}`,
    `               ${program()} status --socket ${socket}`,
    `  its page:    ${program()} page --socket ${socket}`,
    `  allow more:  ${addLine('NAME', list)}`,
  ]
  return `${lines.join('\n')}\n`
}

/** Returns a line with a command that reaches the first allowed name. */
export function tryIt(inside: UpPlan['inside'], targets: readonly string[]): readonly string[] {
  const target = targets.find((each) => REACHED.test(each)) ?? ''
  const [, name, port] = REACHED.exec(target) ?? []
  if (inside === undefined || name === undefined) return []
  const [before, after] = inside
  return [`  try it:      ${before}curl -sSI ${port === '80' ? 'http' : 'https'}://${name}${after}`]
}

/** A name that a command can reach: on every port, or on the port of HTTPS or HTTP. */
const REACHED = /^([a-z][a-z0-9.-]*)(?::(443|80)(?:\/tcp)?)?$/i

function targetsOf(list: string): readonly string[] {
  return allowLines(textIn(list)).map((line) => line.text)
}

export function kept({ namespace }: UpPlan, config: string): string {
  const inside = namespace === undefined ? '' : `nsenter --net=${namespace} `
  return `namegate: the configuration stays; to run it: ${inside}${program()} run --config ${shellWord(config)}\n`
}
