// Sockets of the caller that are covered in the command's file system: those of agents, sessions and services that would act for
// the command outside its network namespace. They are found by known names, by environment variables that lead to a socket, and by
// the names of all UNIX sockets in the caller's network namespace (bound-sockets.ts). The variables are removed, too.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { boundSockets, placesNow } from './bound-sockets.ts'

export interface Hidden {
  /** Covered by nothing: connecting is refused. */
  readonly files: readonly string[]
  /** Covered by an empty folder. */
  readonly folders: readonly string[]
  /** The environment without what leads to them. */
  readonly env: Readonly<Record<string, string>>
}

export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
  /** Paths of UNIX sockets that are bound. */
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
/** Below the home folder. */
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
/** Names that end in the user's number come with it. */
const FOLDERS: readonly string[] = [
  '/run/screen',
  ...['.ICE-unix', '.X11-unix'].map((name) => resolve('/tmp', name)),
]
const USER_FOLDERS: readonly string[] = [
  '/run/user/',
  ...['tmux-', 'podman-run-'].map((name) => resolve('/tmp', name)),
]

/** Meaningless, or worse, without what they lead to. */
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

export function callerNow(): Caller {
  return {
    env: process.env,
    uid: process.geteuid?.() ?? 0,
    sockets: boundSockets(placesNow()),
    isSocket,
  }
}

/** What cannot be looked at cannot be connected to either. */
function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket()
  } catch {
    return false
  }
}

/** Paths that a value may lead to: itself, after `unix:`, after `path=`, before a comma or semicolon. */
function pathsIn(value: string): readonly string[] {
  return value
    .split(/[,;\s]/)
    .map((part) => part.replace(/^(?:[a-z]+:(?:path=)?(?:\/\/)?)/, ''))
    .filter((part) => part.startsWith('/'))
}
