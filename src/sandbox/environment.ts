// `clearedEnv` makes the environment of `exec --env-clear`: the variables that every program expects, and those that `--keep` names. All other
// variables, which can hold secrets, stay outside.

import { matchesPattern } from '../core/name-pattern.ts'

/** Variables that a command gets without `--keep`. */
export const BASIC_VARIABLES: readonly string[] = [
  'COLORTERM',
  'HOME',
  'LANG',
  'LANGUAGE',
  'LC_*',
  'LOGNAME',
  'NO_COLOR',
  'PATH',
  'SHELL',
  'TERM',
  'TMPDIR',
  'TZ',
  'USER',
]

/** The form of `--keep`. */
export const KEEP_FORM = 'the name of a variable, or the beginning of names and *'

export function isKeepable(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(text)
}

/** Returns the variables of `env` that are basic or that `keep` names. A name that ends with `*` stands for all names that begin so. */
export function clearedEnv(
  env: Readonly<Record<string, string>>,
  keep: readonly string[],
): Readonly<Record<string, string>> {
  const wanted = [...BASIC_VARIABLES, ...keep]
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => wanted.some((each) => matchesPattern(each, name))),
  )
}
