// The demo's own folder: configuration, state, socket and, for eBPF, a bpffs of its own. Removed with everything in it
// when the process ends in any way it can notice; what a killed run left is swept by the next one.

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pinLockFile } from '../src/state/lock.ts'
import { pinNoteFile } from '../src/daemon/noted-pins.ts'
import { forgetSocket } from '../src/daemon/noted-sockets.ts'

/** Where daemons keep locks and notes. */
const RUN = '/run/namegate'
const NAME = /^namegate-demo-(\d+)-/

export class Workspace {
  readonly folder: string
  readonly #isRunOurs = !existsSync(RUN)

  constructor() {
    sweepDead()
    this.folder = mkdtempSync(join(tmpdir(), `namegate-demo-${process.pid}-`))
    process.on('exit', () => this.remove())
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => process.exit(130))
    }
  }

  /** The same as at the end of the process, for who wants to say that it is done. */
  remove(): void {
    removeFolder(this.folder)
    if (this.#isRunOurs) removeEmpty(RUN)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text)
  }

  copy(from: URL, name: string): void {
    cpSync(from, this.path(name))
  }

  /** An empty bpffs for the pinned maps; gone, with the maps, at the end. */
  mountBpf(): string {
    const folder = this.path('bpf')
    mkdirSync(folder)
    execFileSync('mount', ['-t', 'bpf', 'bpf', folder])
    return folder
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Another daemon has files in it, or it is gone.
  }
}

function sweepDead(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = NAME.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) removeFolder(join(tmpdir(), name))
  }
}

function removeFolder(folder: string): void {
  const bpf = join(folder, 'bpf')
  // The mounted bpffs names the lock, so the name is found before the unmount.
  const lock = pinLockFile(join(bpf, 'namegate'))
  if (readFileSync('/proc/self/mounts', 'utf8').includes(` ${bpf} `))
    execFileSync('umount', ['--lazy', bpf])
  // What the daemon keeps outside its folders: the lock of its pins, and the notes of its pins and its socket.
  rmSync(lock, { force: true })
  forgetSocket(join(folder, 'admin.sock'))
  const config = join(folder, 'namegate.yaml')
  if (existsSync(config)) rmSync(pinNoteFile(config), { force: true })
  rmSync(folder, { recursive: true, force: true })
}
