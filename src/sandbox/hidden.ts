// `hiddenFrom` finds the sockets of the caller that the sandbox hides from the command. Agents, sessions and services with such sockets
// would act for the command outside of its network namespace. The sockets are found by known paths, by environment variables that contain
// the path of a socket, and by the names of all UNIX sockets in the caller's network namespace (bound-sockets.ts). Variables with paths of
// sockets are removed from the command's environment.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { boundSockets, placesNow } from './bound-sockets.ts'

/** What the sandbox hides from the command. */
export interface Hidden {
  /** Paths that the launcher covers, so that connecting to them is refused. */
  readonly files: readonly string[]
  /** Folders that the launcher covers with an empty folder. */
  readonly folders: readonly string[]
  /** The environment without the variables that contain paths of sockets. */
  readonly env: Readonly<Record<string, string>>
}

/** What is known about the process that runs `namegate exec`. */
export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
  /** Paths of bound UNIX sockets (bound-sockets.ts). */
  readonly sockets: Iterable<string>
  readonly isSocket: (path: string) => boolean
}

const FILES: readonly string[] = [
  '/run/buildkit/buildkitd.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/run/dbus/system_bus_socket',
  '/run/docker.sock',
  '/run/incus/unix.socket',
  '/run/libvirt/libvirt-sock',
  '/run/nscd/socket',
  '/run/podman/podman.sock',
  '/run/snapd.socket',
  '/run/systemd/io.system.ManagedOOM',
  '/run/systemd/notify',
  '/run/systemd/private',
  '/var/lib/incus/unix.socket',
  '/var/lib/lxd/unix.socket',
  '/var/run/docker.sock',
  '/var/snap/lxd/common/lxd/unix.socket',
]
/** Paths of sockets below the home folder. */
const HOME_FILES: readonly string[] = [
  '.colima/default/docker.sock',
  '.docker/desktop/docker.sock',
  '.docker/run/docker.sock',
  '.gnupg/S.gpg-agent',
  '.gnupg/S.gpg-agent.browser',
  '.gnupg/S.gpg-agent.extra',
  '.gnupg/S.gpg-agent.ssh',
  '.gnupg/S.keyboxd',
  '.gnupg/S.scdaemon',
]
const FOLDERS: readonly string[] = [
  '/run/screen',
  ...['.ICE-unix', '.X11-unix'].map((name) => resolve('/tmp', name)),
]
/** Beginnings of folders. The number of the user is added to each. */
const USER_FOLDERS: readonly string[] = [
  '/run/user/',
  ...['tmux-', 'podman-run-'].map((name) => resolve('/tmp', name)),
]

/** Variables that are always removed, because a program would follow them to sockets that are covered. */
const VARIABLES: readonly string[] = [
  'BUILDKIT_HOST',
  'CONTAINERD_ADDRESS',
  'CONTAINER_HOST',
  'DBUS_SESSION_BUS_ADDRESS',
  'DBUS_SYSTEM_BUS_ADDRESS',
  'DISPLAY',
  'DOCKER_HOST',
  'GNOME_KEYRING_CONTROL',
  'GPG_AGENT_INFO',
  'JOURNAL_STREAM',
  'LISTEN_FDS',
  'LISTEN_PID',
  'NOTIFY_SOCKET',
  'SESSION_MANAGER',
  'SSH_AGENT_PID',
  'SSH_AUTH_SOCK',
  'STY',
  'TMUX',
  'VSCODE_GIT_IPC_HANDLE',
  'VSCODE_IPC_HOOK_CLI',
  'WAYLAND_DISPLAY',
  'XDG_RUNTIME_DIR',
]

/** Returns what to hide from the command. The lists are sorted. A path in them need not exist. */
export function hiddenFrom({ env, uid, sockets, isSocket }: Caller): Hidden {
  const home = env['HOME'] ?? ''
  const files = new Set(FILES)
  const folders = new Set([...FOLDERS, ...USER_FOLDERS.map((name) => `${name}${uid}`)])
  if (home.startsWith('/')) for (const name of HOME_FILES) files.add(resolve(home, name))
  const runtime = env['XDG_RUNTIME_DIR'] ?? ''
  if (runtime.startsWith('/') && resolve(runtime) !== '/') folders.add(resolve(runtime))
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue
    const led = pathsIn(value).filter(isSocket)
    for (const path of led) files.add(path)
    if (led.length === 0 && !VARIABLES.includes(name)) kept[name] = value
  }
  for (const path of sockets) files.add(path)
  return { files: [...files].sort(), folders: [...folders].sort(), env: kept }
}

/** Returns what is known about this process. `bin/namegate` keeps a variable from Node.js, and the command gets it back. */
export function callerNow(): Caller {
  const { NAMEGATE_EXTRA_CA_CERTS: certificates, ...env } = process.env
  return {
    env: certificates === undefined ? env : { ...env, NODE_EXTRA_CA_CERTS: certificates },
    uid: process.geteuid?.() ?? 0,
    sockets: boundSockets(placesNow()),
    isSocket,
  }
}

/** Returns false for a path that cannot be read, because the command cannot connect to it either. */
function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket()
  } catch {
    return false
  }
}

/** Returns the paths in a value. Commas, semicolons and blanks separate parts. `unix:`, `unix:path=` or `unix://` can precede a path. */
function pathsIn(value: string): readonly string[] {
  return value
    .split(/[,;\s]/)
    .map((part) => part.replace(/^(?:[a-z]+:(?:path=)?(?:\/\/)?)/, ''))
    .filter((part) => part.startsWith('/'))
}
