// The daemon as a process: locks, settings, servers, signals, and its end. Resolves with the exit code when
// the daemon has ended. SIGTERM and SIGINT stop it, the kernel goes on enforcing; SIGHUP reads files again.

import { join, resolve } from 'node:path'
import { AdminServer } from './admin/server.ts'
import { MetricsServer } from './admin/metrics-server.ts'
import type { Config } from './config/config.ts'
import { systemClock } from './core/clock.ts'
import { Daemon } from './daemon.ts'
import { makeDaemonAdmin } from './daemon-admin.ts'
import { pinDirectory } from './datapath/ebpf/bpffs.ts'
import { detachAll } from './datapath/ebpf/pins.ts'
import { isBuilt, loadBpf, loadPosix } from './native/native.ts'
import { openDatapath } from './open-datapath.ts'
import { lockOrFail, pinLockFile } from './state/lock.ts'
import { notePins } from './state/pin-note.ts'
import { readSettings, writeSettings } from './state/settings-file.ts'
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
  takeLocks(config, log)
  const settingsFile = join(config.state.directory, 'settings.json')
  const settings = readSettings(settingsFile)
  if (settings.fault !== undefined) log.warn({ fault: settings.fault }, 'settings passed over')
  const daemon = new Daemon({
    config,
    log,
    datapath: openDatapath(config, systemClock),
    auditSettings: settings.audit,
    saveAudit: (audit) => writeSettings(settingsFile, audit),
  })
  let end = (): void => undefined
  const ended = new Promise<void>((done) => (end = done))
  const detach = makeDetach(config, daemon, log, () => end())
  const { state, metrics } = makeDaemonAdmin(daemon, detach)
  const onError = (error: unknown): void => log.error({ error: String(error) }, 'request failed')
  const admin = new AdminServer({ state, socket: config.admin.socket, onError })
  const scrape = new MetricsServer({ ...config.metrics, state, onError })
  try {
    // Before anything is open to others: a signal that comes while it starts is taken, too.
    listenToSignals(daemon, log, () => end())
    await scrape.start()
    await admin.start()
    await daemon.start()
    noteDatapath(config, log)
    announce(daemon, log)
    await ended
  } finally {
    await admin.stop()
    await scrape.stop()
    metrics.stop()
    await daemon.interception.stop()
    daemon.stop()
    log.flush()
  }
  return OK
}

/** One daemon per state folder and pin path. Without the native part there is no lock, and that is said. */
function takeLocks(config: Config, log: Log): void {
  const folder = resolve(config.state.directory)
  if (!isBuilt('posix')) {
    log.warn({ path: folder }, 'state folder is not locked: the native part is not built')
    return
  }
  const posix = loadPosix()
  lockOrFail(posix, join(folder, 'lock'), `state folder ${folder}`)
  if (config.datapath.kind !== 'ebpf') return
  const { pinPath } = config.datapath
  lockOrFail(posix, pinLockFile(pinPath), `pin path ${pinPath}`)
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
  if (datapath.kind !== 'ebpf') return undefined
  return () => {
    log.warn({ path: datapath.pinPath }, 'all enforcement is taken away, as asked; ending')
    daemon.stop()
    detachAll(loadBpf(), datapath.pinPath)
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
