// `runInit` runs `namegate init`: it looks at this host, writes a commented configuration, checks it as the daemon would, and prints the
// next commands.

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { loadConfig } from '../../config/load.ts'
import { runTool } from '../../intercept/tools.ts'
import { makeFolder } from '../../native/make-folder.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { program } from '../program.ts'
import { shellWord } from '../shell-word.ts'
import { CONFIG_FILE } from '../up/files.ts'
import { abilities, hostResolvers, workloadsOfHost } from '../up/find.ts'
import { initFiles } from '../up/init-files.ts'
import { datapathOnHost } from '../up/plan.ts'

const DEFAULT_FOLDER = '/etc/namegate'
const NO_WAY_OUT =
  'namegate: this host has no default route, so allowed workloads reach only the networks of this host: add one with ip route add default via ADDRESS\n'

export async function runInit(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('init takes no argument')
  const folder = resolve(read.texts.get('write') ?? DEFAULT_FOLDER)
  const [resolvers = { file: '/etc/resolv.conf', servers: [] }] = hostResolvers()
  const { workloads: found, hasNoWayOut } = await workloadsOfHost(runTool)
  const files = initFiles({
    datapath: datapathOnHost(abilities()),
    resolvers,
    found,
  })
  write(folder, files, read.flags.has('force'))
  const config = join(folder, CONFIG_FILE)
  loadConfig(config)
  for (const name of files.keys()) output.stdout(`wrote ${join(folder, name)}\n`)
  if (hasNoWayOut) output.stderr(NO_WAY_OUT)
  const isDefault = folder === DEFAULT_FOLDER
  const option = isDefault ? '' : ` --config ${shellWord(config)}`
  output.stdout(`Next, list workloads in ${join(folder, 'endpoints.yaml')}, and policies in ${join(folder, 'policies')}. Then check and run it${isDefault ? ' (as a service: docs/install.md)' : ''}:
  ${program()} config check${option}
  ${program()} run${option}
`)
  return EXIT_OK
}

/** Writes all files or none. Throws UnavailableError if one exists or cannot be written. */
function write(folder: string, files: ReadonlyMap<string, string>, isForced: boolean): void {
  const paths = [...files].map(([name, text]) => ({ path: join(folder, name), text }))
  const there = paths.find(({ path }) => existsSync(path))
  if (there !== undefined && !isForced) {
    throw new UnavailableError(
      `${there.path} exists: give --force to replace it, or another folder with --write DIR`,
    )
  }
  const made: string[] = []
  try {
    for (const { path, text } of paths) {
      makeFolder(dirname(path))
      if (!existsSync(path)) made.push(path)
      writeFileSync(path, text)
    }
  } catch (error) {
    for (const path of made) rmSync(path, { force: true })
    const reason = messageOf(error)
    throw new UnavailableError(`Cannot write the configuration: ${reason}: see --write DIR`)
  }
}
