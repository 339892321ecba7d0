// This file reads what the sandbox needs from the caller, the process that runs `namegate exec`: its privileges, its right to the terminal,
// and the lines of its resolv.conf.

import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'

const CAP_NET_ADMIN = 12n
const CAP_SYS_ADMIN = 21n
/** Positions in /proc/PID/stat after the process name, counted from 0: state, ppid, pgrp, session, tty, tpgid. */
const STAT_GROUP = 2
const STAT_FOREGROUND = 5
const RESOLV_CONF = '/etc/resolv.conf'

/** Returns true if the caller can make namespaces and change its network without a user namespace. `status`: /proc/self/status. */
export function isPrivileged(status = readFileSync('/proc/self/status', 'utf8')): boolean {
  const mask = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  return [CAP_NET_ADMIN, CAP_SYS_ADMIN].every((each) => ((mask >> each) & 1n) === 1n)
}

/** Returns true if the command would inherit a terminal and the caller's process group is in its foreground. */
export function ownsTerminal(): boolean {
  if (!isatty(0) && !isatty(1) && !isatty(2)) return false
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return fields[STAT_GROUP] === fields[STAT_FOREGROUND]
}

/** Returns the command's resolv.conf: the search lists and options of the caller's file (`text`), and the gate as the only server. */
export function resolvText(text = readOrEmpty(RESOLV_CONF)): string {
  const kept = text
    .split('\n')
    .filter((line) => /^\s*(?:search|domain|options|sortlist)\s/.test(line))
  return ['nameserver 127.0.0.1', ...kept, ''].join('\n')
}

/** Returns the working folder, or `/` if it was removed, because the launcher then uses `/` too. */
export function workingFolder(): string {
  try {
    return process.cwd()
  } catch {
    return '/'
  }
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
