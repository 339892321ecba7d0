// Says which words can follow a command line, from the definitions of the commands. The function has no side effects: for names that only
// the daemon knows, and for files, it names the kind of value.

import type { CommandOption, CommandTexts } from '../reference.ts'

/** What can follow. Shells find files themselves, and the daemon knows names of endpoints and resources. */
export type Wanted =
  | { readonly kind: 'words'; readonly words: readonly Word[] }
  | { readonly kind: 'files' }
  /** `prefix` is what stands before the name in the same word, such as `--endpoint=`. */
  | { readonly kind: 'endpoints' | 'resources'; readonly prefix: string }

export interface Word {
  readonly word: string
  /** A few words about it; '' if there are none. */
  readonly about: string
}

const NOTHING: Wanted = { kind: 'words', words: [] }
const FILES: Wanted = { kind: 'files' }

/** Words for values in help that are paths. */
const PATHS: readonly string[] = ['FILE', 'PATH', 'DIR', 'FILE|FD']
/** Options whose values are names of endpoints. */
const ENDPOINT_OPTIONS: readonly string[] = ['endpoint', 'as']
/** Values of options whose help has a word for them. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  verdict: ['allow', 'deny', 'audit', 'error', 'event', 'answered', 'denied', 'drop'],
  protocol: ['tcp', 'udp'],
  format: ['policy', 'allow-list'],
  uplink: ['pasta', 'slirp4netns', 'veth'],
  'deny-response': ['refused', 'nxdomain'],
  time: ['relative', 'clock', 'absolute'],
  color: ['auto', 'always', 'never'],
}
/** Commands whose arguments are paths: all, or those after a word such as `check`. */
const PATH_COMMANDS: readonly string[] = ['policy check', 'policy lint', 'policy test', 'exec']
const PATHS_AFTER_WORD: Readonly<Record<string, readonly string[]>> = {
  config: ['check'],
  state: ['show', 'check'],
}

/** `words` are the words after `namegate`. The last one is to be completed, and can be ''. */
export function complete(words: readonly string[], specs: readonly CommandTexts[]): Wanted {
  const [first, ...rest] = words
  if (first === undefined || rest.length === 0) return commandsOf(first ?? '', specs)
  if (first === 'help' && rest.at(-1)?.startsWith('-') !== true) {
    const helped = specs.find(({ name }) => name === rest[0])
    if (rest.length === 1) return commandsOf(rest[0] ?? '', specs)
    return rest.length === 2 ? verbsOf(helped?.verbs ?? [], rest[1] ?? '') : NOTHING
  }
  const spec = specs.find(({ name }) => name === first)
  if (spec === undefined) return NOTHING
  const verb = spec.verbs?.find(({ name }) => name === `${first} ${rest[0]}`)
  if (verb !== undefined && rest.length > 1) return afterCommand(verb, rest.slice(1))
  const [current = ''] = rest
  return spec.verbs !== undefined && rest.length === 1 && !current.startsWith('-')
    ? verbsOf(spec.verbs, current)
    : afterCommand(spec, rest)
}

function commandsOf(current: string, specs: readonly CommandTexts[]): Wanted {
  const commands = specs.map(({ name, summary }) => ({ word: name, about: summary }))
  const options = ['--help', '--version'].map((word) => ({ word, about: '' }))
  return startingWith(current, current.startsWith('-') ? options : commands)
}

function verbsOf(verbs: readonly CommandTexts[], current: string): Wanted {
  const words = verbs.map(({ name, summary }) => ({
    word: name.split(' ').at(-1) ?? name,
    about: summary,
  }))
  return startingWith(current, words)
}

/** `args` are the words after the command or verb. */
function afterCommand(spec: CommandTexts, args: readonly string[]): Wanted {
  const current = args.at(-1) ?? ''
  const before = args.slice(0, -1)
  const [, named, value] = /^--([^=]+)=(.*)$/s.exec(current) ?? []
  const option = named === undefined ? undefined : spec.options[named]
  if (named !== undefined && value !== undefined) {
    return option === undefined ? NOTHING : valuesOf(named, option, value, `--${named}=`)
  }
  const last = before.at(-1)
  const waiting = before.includes('--') ? undefined : optionNamed(spec, last)
  if (waiting !== undefined && waiting[1].kind !== 'flag') return valuesOf(...waiting, current, '')
  if (current.startsWith('-') && !before.includes('--')) return optionsOf(spec, before, current)
  return argumentOf(spec, positionalsIn(spec, before), before, current)
}

/** Returns the option that a word names, such as `--config` or `-o`, with its name. */
function optionNamed(
  spec: CommandTexts,
  word: string | undefined,
): readonly [name: string, option: CommandOption] | undefined {
  return Object.entries(spec.options).find(
    ([name, { short }]) => word === `--${name}` || (short !== undefined && word === `-${short}`),
  )
}

function valuesOf(name: string, option: CommandOption, current: string, prefix: string): Wanted {
  const { value = '' } = option
  if (ENDPOINT_OPTIONS.includes(name)) return { kind: 'endpoints', prefix }
  if (PATHS.includes(value)) return FILES
  const listed = /^[a-z]+(\|[a-z]+)*$/.test(value) ? value.split('|') : (VALUES[name] ?? [])
  const words = listed.map((word) => ({ word: `${prefix}${word}`, about: '' }))
  return startingWith(`${prefix}${current}`, words)
}

/** Offers the options that are not given yet, and those that can be repeated. */
function optionsOf(spec: CommandTexts, before: readonly string[], current: string): Wanted {
  const words = Object.entries(spec.options).flatMap(([name, option]) => {
    const { kind, about } = option
    const word = name === 'output' ? '-o' : `--${name}`
    const isGiven = before.some((each) => each === word || each.startsWith(`${word}=`))
    return isGiven && kind !== 'list' ? [] : [{ word, about: about.split('\n')[0] ?? '' }]
  })
  return startingWith(current, [...words, { word: '--help', about: '' }])
}

/** Returns the words that are neither options nor their values. */
function positionalsIn(spec: CommandTexts, before: readonly string[]): readonly string[] {
  return before.filter((word, i) => {
    const owner = optionNamed(spec, before[i - 1])
    const isValue = owner !== undefined && owner[1].kind !== 'flag'
    return !isValue && !word.startsWith('-')
  })
}

function argumentOf(
  spec: CommandTexts,
  given: readonly string[],
  before: readonly string[],
  current: string,
): Wanted {
  const { name, words = [] } = spec
  const [verb] = given
  if (PATH_COMMANDS.includes(name)) return FILES
  if (verb !== undefined && PATHS_AFTER_WORD[name]?.includes(verb) === true) return FILES
  if (name === 'resource' && given.length === 1) return { kind: 'resources', prefix: '' }
  if (given.length === 0 && words.length > 0) {
    return startingWith(
      current,
      words.map((word) => ({ word, about: '' })),
    )
  }
  return current === '' ? optionsOf(spec, before, current) : NOTHING
}

function startingWith(current: string, words: readonly Word[]): Wanted {
  return { kind: 'words', words: words.filter(({ word }) => word.startsWith(current)) }
}
