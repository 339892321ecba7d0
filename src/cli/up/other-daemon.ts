// `findOtherDaemon` finds the daemon that already intercepts queries on this host, with its configuration and its endpoints. The lock of
// interception names its configuration. It changes nothing.

import { readlinkSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { findPolicyFiles, isSameFile, readTextFile } from '../../config/files.ts'
import { loadConfig } from '../../config/load.ts'
import { parseEndpoints, type EndpointRecord } from '../../endpoints/file.ts'
import { holderOf, interceptionLockFile } from '../../state/lock.ts'
import { noteIn } from './added-lines.ts'

export interface OtherDaemon {
  /** Undefined if the lock does not name its holder. */
  readonly pid: number | undefined
  /** Undefined if this process does not see the configuration, for example because the daemon runs in a container. */
  readonly known: KnownDaemon | undefined
}

export interface KnownDaemon {
  readonly config: Pick<Config, 'file' | 'listeners' | 'datapath'>
  /** The first file of endpoints. Undefined if the configuration has none. */
  readonly endpoints: EndpointsText | undefined
  /** The allow-list of a daemon that `up` runs. Undefined for another daemon. */
  readonly list: string | undefined
  /** False if the configuration ends with the daemon: `up` without --write made it. */
  readonly isKept: boolean
}

export interface EndpointsText {
  readonly file: string
  readonly text: string
  readonly records: readonly EndpointRecord[]
}

/** Returns undefined if no daemon intercepts queries on this host. */
export function findOtherDaemon(): OtherDaemon | undefined {
  const holder = holderOf(interceptionLockFile())
  if (holder === undefined) return undefined
  const { about, holder: pid } = holder
  const file = about === undefined || pid === undefined ? undefined : seenAs(about, pid)
  return { pid, known: file === undefined ? undefined : knownDaemon(file) }
}

/** Returns the absolute path of a file that a process named. Undefined if the path is another file, or none, for this process. */
function seenAs(path: string, pid: number): string | undefined {
  try {
    const file = resolve(readlinkSync(`/proc/${pid}/cwd`), path)
    return isSameFile(file, `/proc/${pid}/root${file}`) ? file : undefined
  } catch {
    return undefined
  }
}

function knownDaemon(file: string): KnownDaemon | undefined {
  try {
    const config = loadConfig(file)
    const note = noteIn(dirname(config.admin.socket))
    const isKept = note === undefined || dirname(file) !== dirname(config.admin.socket)
    return { config, endpoints: endpointsOf(config), list: note?.list, isKept }
  } catch {
    // The file has a fault by now.
    return undefined
  }
}

function endpointsOf({ endpoints }: Config): EndpointsText | undefined {
  const [file] = endpoints.files.flatMap(({ path }) => findPolicyFiles(path).files)
  const read = file === undefined ? undefined : readTextFile(file)
  if (file === undefined || read?.kind !== 'ok') return undefined
  return { file, text: read.text, records: parseEndpoints(read.text, file).endpoints }
}
