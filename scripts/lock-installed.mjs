// Exit 0 when node_modules holds what package-lock.json asks for, 1 when `npm ci` is due. Compares the lock
// with the record that npm keeps of what it installed; file times do not matter, so a fresh checkout of the
// same lock costs nothing. Packages that are optional for this platform may be absent.
import { existsSync, readFileSync } from 'node:fs'

function packagesOf(file) {
  if (!existsSync(file)) return undefined
  return JSON.parse(readFileSync(file, 'utf8')).packages
}

const wanted = packagesOf('package-lock.json')
const installed = packagesOf('node_modules/.package-lock.json')

function isInstalled([path, entry]) {
  if (path === '') return true
  const found = installed[path]
  if (found === undefined) return entry.optional === true
  return found.version === entry.version && found.integrity === entry.integrity
}

process.exit(installed !== undefined && Object.entries(wanted).every(isInstalled) ? 0 : 1)
