// `hasServiceUnit` says if systemd has the unit of namegate on this host, so that messages name only commands that work.

import { existsSync } from 'node:fs'

const UNIT = 'namegate.service'
/** Where systemd looks for units (systemd.unit(5)). */
const FOLDERS = ['/etc', '/run', '/usr/local/lib', '/usr/lib', '/lib']

export function hasServiceUnit(): boolean {
  return FOLDERS.some((folder) => existsSync(`${folder}/systemd/system/${UNIT}`))
}
