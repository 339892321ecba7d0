// SettingsKeeper saves the settings that were made at run time, in a small JSON file of the state folder. Settings are in force at once.
// If the disk refuses a write, it is repeated until it succeeds. The file is written under another name and synced; then it is renamed and
// the folder is synced. So a crash leaves the old settings or the new ones. A file with unknown content is reported and gives no settings.

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import { type AuditSettings, NO_AUDIT_SETTINGS } from '../enforcement/audit-control.ts'
import { makeFolder } from '../native/make-folder.ts'
import { RetryTimer } from './faults.ts'

export interface SettingsKeeperOptions {
  readonly file: string
  readonly clock: Clock
  /** Throws while another process owns the folder. */
  readonly mayWrite?: () => void
  /** Called after every write that the disk refused, with the reason. */
  readonly onFault: (reason: string) => void
}

export class SettingsKeeper {
  /** The settings of the file at the start. */
  readonly saved: AuditSettings
  readonly #options: SettingsKeeperOptions
  readonly #again: RetryTimer
  /** Settings that are not on the disk yet. */
  #pending: AuditSettings | undefined
  #damage: string | undefined
  #fault: string | undefined
  #last: AuditSettings

  constructor(options: SettingsKeeperOptions) {
    this.#options = options
    this.#again = new RetryTimer(options.clock, () => this.#write())
    const { audit, fault } = readSettings(options.file)
    this.saved = audit
    this.#last = audit
    this.#damage = fault
  }

  /** True if a restart would bring back other settings than those in force. */
  get isFailing(): boolean {
    return this.#pending !== undefined
  }

  /** Why the settings are not on the disk. Undefined when they are. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Why the file was not used at the start. Empty when it was used, or was written since. */
  get damage(): readonly string[] {
    return this.#damage === undefined ? [] : [this.#damage]
  }

  save(settings: AuditSettings): void {
    this.#last = settings
    this.#pending = settings
    this.#write()
  }

  /** Writes the settings again after the file was lost. Without settings there is no file. */
  saveAgain(): void {
    if (this.#last !== NO_AUDIT_SETTINGS) this.save(this.#last)
  }

  /** Writes the settings again if there is no file at the path any more. Returns the path then, and nothing otherwise. */
  look(): readonly string[] {
    const { file } = this.#options
    if (this.#pending !== undefined || this.#last === NO_AUDIT_SETTINGS) return []
    if (isSettingsFile(file)) return []
    this.save(this.#last)
    return [file]
  }

  /** Tries once more to write settings that are not on the disk, and ends the repetition. */
  stop(): void {
    if (this.#pending !== undefined) this.#write()
    this.#again.cancel()
  }

  #write(): void {
    this.#again.cancel()
    if (this.#pending === undefined) return
    try {
      this.#options.mayWrite?.()
      writeSettings(this.#options.file, this.#pending)
      this.#pending = undefined
      this.#damage = undefined
      this.#fault = undefined
    } catch (error) {
      this.#fault = messageOf(error)
      this.#options.onFault(this.#fault)
      this.#again.later()
    }
  }
}

export interface ReadSettings {
  readonly audit: AuditSettings
  /** Why the file was not used. Undefined: the file was used, or there is none. */
  readonly fault: string | undefined
}

/** Returns true if a regular file is at the path. Returns false if the disk reports an error. */
export function isSettingsFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}

export function readSettings(file: string): ReadSettings {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const reason = messageOf(error)
    const fault = existsSync(file) ? `${file}: cannot read: ${reason}` : undefined
    return { audit: NO_AUDIT_SETTINGS, fault }
  }
  try {
    const audit = parseAudit(JSON.parse(text))
    if (audit !== undefined) return { audit, fault: undefined }
  } catch {
    // The fault below is the same for every reason.
  }
  return {
    audit: NO_AUDIT_SETTINGS,
    fault: `${file}: found no settings that this version understands`,
  }
}

export function writeSettings(file: string, audit: AuditSettings): void {
  makeFolder(dirname(file))
  const beside = `${file}.new`
  withFile(openSync(beside, 'w', 0o600), (fd) => {
    writeSync(fd, `${JSON.stringify({ version: 1, audit })}\n`)
    fsyncSync(fd)
  })
  renameSync(beside, file)
  withFile(openSync(dirname(file), 'r'), fsyncSync)
}

/** Closes the file even if `use` throws. Refused writes are repeated for as long as the process runs, so no descriptor must leak. */
function withFile(fd: number, use: (fd: number) => void): void {
  try {
    use(fd)
  } finally {
    closeSync(fd)
  }
}

function parseAudit(value: unknown): AuditSettings | undefined {
  if (!isRecord(value) || value['version'] !== 1 || !isRecord(value['audit'])) return undefined
  const { node, endpoints, selectors } = value['audit']
  if (node !== undefined && typeof node !== 'boolean') return undefined
  if (!isRecord(endpoints) || !Array.isArray(selectors)) return undefined
  const names: Record<string, boolean> = {}
  for (const [name, on] of Object.entries(endpoints)) {
    if (typeof on !== 'boolean') return undefined
    names[name] = on
  }
  const parsed = selectors.map(parseSelector)
  const known = parsed.filter((selector) => selector !== undefined)
  return known.length === parsed.length ? { node, endpoints: names, selectors: known } : undefined
}

function parseSelector(value: unknown): AuditSettings['selectors'][number] | undefined {
  if (!isRecord(value) || typeof value['on'] !== 'boolean') return undefined
  if (!isRecord(value['matchLabels'])) return undefined
  const matchLabels: Record<string, string> = {}
  for (const [key, text] of Object.entries(value['matchLabels'])) {
    if (typeof text !== 'string') return undefined
    matchLabels[key] = text
  }
  return { matchLabels, on: value['on'] }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
