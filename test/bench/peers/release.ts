// Copies the built namegate at the beginning of a run. Later changes of the sources have no effect, and the run uses dist/, never the
// sources.

import { cpSync, existsSync, mkdtempSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PARTS = ['bin', 'package.json', 'dist', 'build/Release', 'build/namegate.bpf.o']

export interface Release {
  readonly folder: string
  readonly command: string
  /** A description for the head of the report. */
  readonly title: string
}

/** Copies the release below `root`. Throws if it is not built. The caller removes `folder`. */
export function copyRelease(root: string): Release {
  for (const part of PARTS) {
    if (!existsSync(join(root, part))) throw new Error(`${part} is not there: npm run build`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'namegate-release-'))
  for (const part of PARTS) {
    cpSync(join(root, part), join(folder, part), { recursive: true, preserveTimestamps: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const built = join(root, 'dist/src/.built')
  const since = existsSync(built) ? statSync(built).mtime : new Date(0)
  const newer = execFileSync('find', [join(root, 'src'), '-name', '*.ts', '-newer', built], {
    encoding: 'utf8',
  })
  const stale = newer === '' ? '' : ', OLDER THAN ITS SOURCES'
  const title = `namegate ${versionIn(root)}, dist of ${since.toISOString()}${stale}, Node ${process.version}`
  return { folder, command: join(folder, 'bin/namegate'), title }
}

function versionIn(root: string): string {
  const text = readFileSync(join(root, 'package.json'), 'utf8')
  return /"version": "([^"]+)"/.exec(text)?.[1] ?? 'without version'
}
