// The caller: its privileges, whether its terminal can be handed on, and the lines of its resolv.conf besides servers.

import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'

const CAP_NET_ADMIN = 12n
const CAP_SYS_ADMIN = 21n
/** Fields of /proc/PID/stat after the name: state, ppid, pgrp, session, tty, tpgid. */
const STAT_GROUP = 2
const STAT_FOREGROUND = 5
const RESOLV_CONF = '/etc/resolv.conf'

/** Whether namespaces can be made, and the caller's network be changed, without a user namespace. */
export function isPrivileged(status = readFileSync('/proc/self/status', 'utf8')): boolean {
  const mask = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  return [CAP_NET_ADMIN, CAP_SYS_ADMIN].every((each) => ((mask >> each) & 1n) === 1n)
}

/** Whether our process group has the terminal that the command would inherit. */
export function ownsTerminal(): boolean {
  if (!isatty(0) && !isatty(1) && !isatty(2)) return false
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return fields[STAT_GROUP] === fields[STAT_FOREGROUND]
}

/** The command's resolv.conf: search lists and options of the caller's, and the gate as the only server. */
export function resolvText(text = readOrEmpty(RESOLV_CONF)): string {
  const kept = text
    .split('\n')
    .filter((line) => /^\s*(?:search|domain|options|sortlist)\s/.test(line))
  return ['nameserver 127.0.0.1', ...kept, ''].join('\n')
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
