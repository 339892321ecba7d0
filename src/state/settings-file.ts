// Settings made at run time, kept as a small JSON file in the state folder: written beside, synced, renamed,
// and the folder synced, so that a crash leaves the old or the new ones. A file that can't be understood
// counts as no settings and is said so.

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
import { NO_AUDIT_SETTINGS, type AuditSettings } from '../enforcement/audit-control.ts'
import { messageOf } from '../core/errors.ts'
import { makeFolder } from './files/make-folder.ts'

export interface ReadSettings {
  readonly audit: AuditSettings
  /** Why the file was passed over. */
  readonly fault: string | undefined
}

/** Whether a file is at the place, whatever is in it; not, when the disk does not say. */
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
    // Told below: the reason makes no difference to what is to be done.
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

/** Closes it whatever the disk says: settings that are refused are tried again for as long as the process runs. */
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
