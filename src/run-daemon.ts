// The daemon as a process: signals, and its end. Resolves with the exit code when
// the daemon has ended. SIGTERM and SIGINT stop it, the kernel goes on enforcing; SIGHUP reads files again.

import type { Config } from './config/config.ts'
import { systemClock } from './core/clock.ts'
import type { Daemon } from './daemon.ts'
import { DaemonServices } from './daemon-services.ts'
import { pinDirectory } from './datapath/ebpf/bpffs.ts'
import { detachAll } from './datapath/ebpf/pins.ts'
import { removeTable } from './datapath/nftables/remove.ts'
import { loadBpf, loadNetlink } from './native/native.ts'
import { notePins } from './state/pin-note.ts'
import type { Log } from './telemetry/log.ts'
import { VERSION } from './version.ts'

const OK = 0
/** Time for the answer to whoever asked for the end. */
const ANSWER_MS = 100

export interface RunOptions {
  readonly config: Config
  readonly log: Log
}

/** Runs until it is told to stop. Throws InvalidInputError or UnavailableError when it cannot start. */
export async function runDaemon({ config, log }: RunOptions): Promise<number> {
  let end = (): void => undefined
  const ended = new Promise<void>((done) => (end = done))
  const services = new DaemonServices({
    config,
    log,
    outside: { state: true, admin: true, metrics: true },
    makeDetach: (daemon) => makeDetach(config, daemon, log, () => end()),
  })
  const { daemon } = services
  try {
    // Before anything is open to others: a signal that comes while it starts is taken, too.
    listenToSignals(daemon, log, () => end())
    await services.start()
    noteDatapath(config, log)
    announce(daemon, log)
    await ended
  } finally {
    await services.stop()
  }
  return OK
}

/** Without the note break glass still works, only slower. */
function noteDatapath({ file, datapath }: Config, log: Log): void {
  if (datapath.kind !== 'ebpf') return
  try {
    notePins(file, pinDirectory(datapath.pinPath))
  } catch (error) {
    log.warn({ error: String(error) }, 'pins are not noted for a quick datapath mode')
  }
}

function makeDetach(
  { datapath }: Config,
  daemon: Daemon,
  log: Log,
  end: () => void,
): (() => void) | undefined {
  if (datapath.kind === 'memory') return undefined
  const path = datapath.kind === 'ebpf' ? datapath.pinPath : undefined
  return () => {
    log.warn({ path }, 'all enforcement is taken away, as asked; ending')
    daemon.stop()
    if (path === undefined) removeTable(loadNetlink())
    else detachAll(loadBpf(), path)
    systemClock.after(ANSWER_MS, end)
  }
}

function announce(daemon: Daemon, log: Log): void {
  log.info(
    {
      version: VERSION,
      pid: process.pid,
      datapath: daemon.datapath.kind,
      mode: daemon.mode,
      addresses: daemon.proxy.listeners.texts,
      endpoints: [...daemon.endpoints.registry].map(({ name }) => name),
    },
    'namegate serves',
  )
  const { datagrams, streams } = daemon.proxy
  if (!datagrams.native || !streams.native) {
    log.warn(
      { reason: 'not built: apt-get install gcc libc6-dev libuv1-dev, then npm run build' },
      'no native sockets: slower, and explicit mode only',
    )
  }
}

function listenToSignals(daemon: Daemon, log: Log, end: () => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      const { kind } = daemon.datapath
      log.info(
        { signal, datapath: kind, mode: daemon.mode },
        'stopping; what the kernel enforces stays in force',
      )
      end()
    })
  }
  process.on('SIGHUP', () => {
    log.info({ signal: 'SIGHUP' }, 'reading configuration files again')
    daemon.sources.reload()
  })
}
