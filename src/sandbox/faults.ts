// `execFault` translates a failure of the launcher into one line that names the remedy. If the command cannot be executed, it also returns
// the exit code.

import { UnavailableError } from '../core/errors.ts'
import { errnoName } from '../native/native.ts'
import type { LaunchEnd } from './launcher.ts'

/** The exit codes that shells use for these cases. */
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126

type LaunchFault = Omit<Extract<LaunchEnd, { readonly kind: 'failed' }>, 'kind'>

const NO_USER_NAMESPACES =
  'this kernel or container allows no user namespaces: run as root, or as root set ' +
  'sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 ' +
  '(those that exist)'

const REMEDIES: Readonly<Record<string, string>> = {
  userns: NO_USER_NAMESPACES,
  netns: NO_USER_NAMESPACES,
  namespaces: NO_USER_NAMESPACES,
  loopback: NO_USER_NAMESPACES,
  netlink: 'the kernel lacks nftables: modprobe nf_tables',
  proc: 'parts of /proc are covered, as in most containers: let the container see all of it (systempaths=unconfined)',
  seccomp: 'the kernel lacks seccomp filters (CONFIG_SECCOMP_FILTER)',
  'read-only': 'the kernel lacks mount_setattr: it takes Linux 5.12',
}

/** Returns the exit code and the message if the command cannot be executed. For any other failed step, throws UnavailableError. */
export function execFault(fault: LaunchFault): { readonly code: number; readonly text: string } {
  const { step, errno, detail } = fault
  const name = errnoName(errno)
  if (step === 'exec') {
    const isMissing = name === 'ENOENT' || name === 'ENOTDIR'
    const reason = isMissing ? 'command not found' : `it cannot be executed (${name})`
    return { code: isMissing ? NOT_FOUND : NOT_EXECUTABLE, text: `Cannot run ${detail}: ${reason}` }
  }
  if (step === 'publish') {
    const [address, port] = detail.split(' ')
    throw new UnavailableError(`Cannot publish ${address} port ${port}: ${publishReason(name)}`)
  }
  const remedy = REMEDIES[step]
  const what = [step, detail].filter((part) => part !== '').join(' ')
  const reason = errno === 0 ? '' : `: ${name}`
  throw new UnavailableError(
    `Cannot make the sandbox: ${what}${reason}${remedy === undefined ? '' : `: ${remedy}`}`,
  )
}

function publishReason(name: string): string {
  if (name === 'EADDRINUSE') return 'the port is already in use: choose another'
  if (name === 'EACCES') return 'no privilege for this port: choose one above 1023'
  if (name === 'EADDRNOTAVAIL') return 'no interface has this address'
  return name
}
