// Options of commands: their three kinds, and those that several commands share.

import { UNUSED, type CommandOption } from '../reference.ts'

export function flag(about: string, short?: string): CommandOption {
  return { kind: 'flag', about, ...(short === undefined ? {} : { short }) }
}

export function text(value: string, about: string): CommandOption {
  return { kind: 'text', value, about }
}

/** An option that may be repeated. */
export function list(value: string, about: string): CommandOption {
  return { kind: 'list', value, about }
}

export function json(about: string): CommandOption {
  return { kind: 'text', value: 'json', short: 'o', about }
}

/** For commands that read no configuration. */
export const UNUSED_CONFIG = text('FILE', UNUSED)

/** For commands that ask the daemon. */
export const DAEMON_OPTIONS = {
  config: text('FILE', "config that names the daemon's socket"),
  socket: text('PATH', "the daemon's socket"),
} as const

/** What commands that judge policies without a daemon know of the world. */
export const WORLD_OPTIONS = {
  policies: list('PATH', 'policy files and folders; several may follow, and it may be repeated'),
  endpoints: list('FILE', 'known endpoints; may be repeated'),
  resources: list(
    'FILE',
    "external resources, or what 'get resources -o json' printed; may be repeated",
  ),
  node: list('ADDRESS', 'an address of the node itself; may be repeated'),
} as const
