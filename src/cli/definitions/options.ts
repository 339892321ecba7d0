// This file makes options of commands, and defines the options that several commands share.

import { UNUSED, type CommandOption } from '../reference.ts'

/** Returns an option without a value. */
export function flag(about: string, short?: string): CommandOption {
  return { kind: 'flag', about, ...(short === undefined ? {} : { short }) }
}

/** Returns an option with a value. `value` is the word for the value in help. */
export function text(value: string, about: string): CommandOption {
  return { kind: 'text', value, about }
}

/** Returns an option that can be repeated. */
export function list(value: string, about: string): CommandOption {
  return { kind: 'list', value, about }
}

/** Returns the option `-o json`. `about` says what the JSON contains. */
export function json(about: string): CommandOption {
  return { kind: 'text', value: 'json', short: 'o', about }
}

/** Returns the option `-o` with several values. */
export function formats(values: readonly string[], about: string): CommandOption {
  return { kind: 'text', value: values.join('|'), short: 'o', about }
}

/** The option `--color` of commands that can write colours. */
export const COLOR = text(
  'WHEN',
  'colours: auto (on a terminal, if NO_COLOR is not set), always, never',
)

/** The option `--config` of commands that read no configuration. */
export const UNUSED_CONFIG = text('FILE', UNUSED)

/** The options with which a command finds the daemon. */
export const DAEMON_OPTIONS = {
  config: text('FILE', "config with the daemon's socket"),
  socket: text('PATH', "the daemon's socket"),
} as const

/** The options that tell a command without a daemon about policies, endpoints, resources and the node. */
export const WORLD_OPTIONS = {
  policies: list('PATH', 'policy files and folders; takes several values, and can be repeated'),
  endpoints: list('FILE', 'file of endpoints; can be repeated'),
  resources: list(
    'FILE',
    "file of external resources, or the output of 'get resources -o json'; can be repeated",
  ),
  node: list('ADDRESS', 'an address of the node; can be repeated'),
} as const
