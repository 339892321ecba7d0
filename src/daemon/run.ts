// Runs the daemon as a process: signals, supervisor, end. SIGTERM and SIGINT stop the daemon after the queries in flight are answered. A
// second signal stops the daemon at once. After the end, the kernel continues to enforce. SIGHUP makes the daemon read all files again.

import type { Detach } from '../admin/state.ts'
import type { Config } from '../config/config.ts'
import { stayAlive, systemClock } from '../core/clock.ts'
import type { Daemon } from './daemon.ts'
import { DaemonProcess, type End } from './process.ts'
import { pinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { detachAll } from '../datapath/ebpf/break-glass.ts'
import { removeTable } from '../datapath/nftables/break-glass.ts'
import { refuseStale } from './stale-datapaths.ts'
import { loadBpf, loadNetlink } from '../native/native.ts'
import type { PassedSocket } from '../native/passed-socket.ts'
import { matchSockets } from '../proxy/server/passed-sockets.ts'
import { forgetPins, notePins } from './noted-pins.ts'
import { noteSocket } from './noted-sockets.ts'
import type { Supervisor } from '../systemd/notify.ts'
import type { Log } from '../telemetry/log.ts'
import { VERSION } from '../version.ts'

const OK = 0
/** The process waits this long, so that the admin API can answer the request to detach. */
const ANSWER_MS = 100
/** The longest wait for queries in flight when interception ends before the daemon. */
const IN_FLIGHT_MAX_MS = 1000

export interface RunOptions {
  readonly config: Config
  readonly log: Log
  /** Listening sockets that were bound before the start. */
  readonly passed?: readonly PassedSocket[]
  /** The supervisor, such as systemd, that receives notices about the daemon. */
  readonly supervisor?: Supervisor | undefined
  /** True: the process takes over from the running daemon. */
  readonly takesOver?: boolean
}

/**
 * Runs the daemon until a signal or a request ends it, and resolves with the exit code. Rejects with InvalidInputError or
 * UnavailableError when the daemon cannot start, for example because a datapath of another kind still enforces.
 */
export async function runDaemon(options: RunOptions): Promise<number> {
  const { config, log, passed = [], supervisor, takesOver = false } = options
  refuseStale(config, takesOver)
  const service = new DaemonProcess({
    config,
    log,
    makeDetach: (daemon) => makeDetach(config, daemon, log, (how) => void service.ending.end(how)),
    passed: passed.length > 0 ? matchSockets(passed, config.listeners) : undefined,
    supervisor,
  })
  let end: End = 'detached'
  let forget = (): void => undefined
  // `alive` keeps the process alive during the end, when all sockets are closed and only timers are left.
  const alive = stayAlive()
  try {
    // The signal handlers come first, so that a signal during the start ends the daemon too.
    listenToSignals(service, log)
    await (takesOver ? service.takeOver() : service.start())
    noteDatapath(config, log)
    forget = noteSocket(config.admin.socket)
    if (service.daemon !== undefined) announce(service.daemon, log)
    end = await service.ending.asked
    if (end === 'give-back' && service.daemon !== undefined) {
      await giveBack(config, service.daemon, log)
    }
  } finally {
    try {
      await service.stop(end === 'stop')
    } finally {
      // A successor has the same socket, and so the same note.
      if (end !== 'handed-over') forget()
      alive.cancel()
    }
  }
  return OK
}

/** Notes the pin path for break-glass mode. Break-glass mode works without the note, but slower. */
function noteDatapath({ file, datapath }: Config, log: Log): void {
  if (datapath.kind !== 'ebpf') return
  try {
    notePins(file, pinDirectory(datapath.pinPath))
  } catch (error) {
    log.warn({ error: String(error) }, 'pins are not noted for a quick datapath mode')
  }
}

/** `ask`: asks for the end of the process. */
function makeDetach(
  config: Config,
  daemon: Daemon,
  log: Log,
  ask: (end: End) => void,
): Detach | undefined {
  const { datapath } = config
  if (datapath.kind === 'memory') return undefined
  const path = datapath.kind === 'ebpf' ? datapath.pinPath : undefined
  return (withInterception) => {
    log.warn({ path }, 'all enforcement is taken away, as asked; ending')
    if (withInterception) return ask('give-back')
    removeEnforcement(config, daemon)
    systemClock.after(ANSWER_MS, () => ask('detached'))
  }
}

/**
 * Opens the datapath, removes the rules of interception while the daemon answers, and then removes enforcement. The mode is audit and
 * not bypass, because a bypass would outlast a kill of this process, and the next daemon would keep it.
 */
async function giveBack(config: Config, daemon: Daemon, log: Log): Promise<void> {
  const { mode, interception, proxy } = daemon
  try {
    mode.set('audit')
    await interception.stop(true)
    await proxy.drain.run(IN_FLIGHT_MAX_MS, false)
  } catch (error) {
    log.error({ error: String(error) }, 'queries can be lost at this end')
  }
  removeEnforcement(config, daemon)
}

function removeEnforcement({ file, datapath }: Config, daemon: Daemon): void {
  daemon.stop()
  if (datapath.kind === 'ebpf') detachAll(loadBpf(), datapath.pinPath)
  else removeTable(loadNetlink())
  forgetPins(file)
}

function announce(daemon: Daemon, log: Log): void {
  log.info(
    {
      version: VERSION,
      pid: process.pid,
      datapath: daemon.datapath.kind,
      mode: daemon.mode.now,
      addresses: daemon.proxy.listeners.texts,
      endpoints: [...daemon.endpoints.registry].map(({ name }) => name),
    },
    'namegate serves',
  )
}

function listenToSignals(service: DaemonProcess, log: Log): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!service.ending.end('stop')) return
      const { daemon } = service
      log.info(
        { signal, datapath: daemon?.datapath.kind, mode: daemon?.mode.now },
        daemon?.datapath.kind === 'memory'
          ? 'stopping; the memory datapath leaves nothing in the kernel'
          : 'stopping; what the kernel enforces stays in force',
      )
    })
  }
  process.on('SIGHUP', () => {
    log.info({ signal: 'SIGHUP' }, 'reading configuration files again')
    service.reload()
  })
}
