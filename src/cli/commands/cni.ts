// `runCni` runs `namegate cni install|check|uninstall`. The program comes before the configuration that names it, and goes after it.

import { isAbsolute, join } from 'node:path'
import { EXIT_NEGATIVE, EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { chainOf, PLUGIN, type PluginKeys } from '../cni/chain.ts'
import { program } from '../program.ts'
import {
  fileInUse,
  hasChain,
  hasProgram,
  OWN_FILE,
  remove,
  writeChain,
  writeProgram,
} from '../cni/node-files.ts'

const CONF_FOLDER = '/etc/cni/net.d'
const BIN_FOLDER = '/opt/cni/bin'
const VERBS = ['install', 'check', 'uninstall'] as const
const CHOICES = ['refuse', 'close']
const SECONDS_MOST = 120
/** Room for a path in the address of a socket. */
const SOCKET_MOST = 107

interface Folders {
  readonly conf: string
  readonly bin: string
}

export function runCni(read: ParsedArguments, output: CommandOutput): number {
  const [word, ...rest] = read.positionals
  const verb = VERBS.find((each) => each === word)
  if (verb === undefined || rest.length > 0) {
    return read.wrong('cni needs install, check or uninstall')
  }
  const keepsProgram = read.flags.has('keep-program')
  if (keepsProgram && verb !== 'uninstall') return read.wrong('--keep-program is for uninstall')
  const keys = keysOf(read)
  if (typeof keys === 'string') return read.wrong(keys)
  const folders = {
    conf: read.texts.get('conf-dir') ?? CONF_FOLDER,
    bin: read.texts.get('bin-dir') ?? BIN_FOLDER,
  }
  switch (verb) {
    case 'install':
      return install(folders, keys, output)
    case 'check':
      return check(folders, keys, output)
    case 'uninstall':
      return uninstall(folders, keepsProgram, output)
  }
}

/** Returns the keys of the plugin, or what is wrong with an option. */
function keysOf({ texts }: ParsedArguments): PluginKeys | string {
  const socket = texts.get('socket')
  const choice = texts.get('on-failure')
  const seconds = texts.get('timeout-seconds')
  if (socket !== undefined && (!isAbsolute(socket) || Buffer.byteLength(socket) > SOCKET_MOST)) {
    return `--socket: found ${socket}, expected an absolute path of at most ${SOCKET_MOST} octets`
  }
  if (choice !== undefined && !CHOICES.includes(choice)) {
    return `--on-failure: found ${choice}, expected ${CHOICES.join(' or ')}`
  }
  const number = Number(seconds ?? 1)
  if (!Number.isInteger(number) || number < 1 || number > SECONDS_MOST) {
    return `--timeout-seconds: found ${seconds}, expected a whole number from 1 to ${SECONDS_MOST}`
  }
  return {
    ...(socket === undefined ? {} : { socket }),
    ...(choice === undefined ? {} : { 'on-failure': choice }),
    ...(seconds === undefined ? {} : { 'timeout-seconds': number }),
  }
}

function install(folders: Folders, keys: PluginKeys, output: CommandOutput): number {
  const file = fileInUse(folders.conf)
  const text = chainOf(file, keys)
  if (!hasProgram(folders.bin)) {
    writeProgram(folders.bin)
    output.stdout(`wrote ${join(folders.bin, PLUGIN)}\n`)
  }
  if (!hasChain(folders.conf, text)) {
    writeChain(folders.conf, text)
    output.stdout(`wrote ${join(folders.conf, OWN_FILE)}\n`)
  }
  output.stdout(`installed: ${PLUGIN} runs behind the plugins of ${file.path}\n`)
  return EXIT_OK
}

function check(folders: Folders, keys: PluginKeys, output: CommandOutput): number {
  const file = fileInUse(folders.conf)
  const own = join(folders.conf, OWN_FILE)
  const plugin = join(folders.bin, PLUGIN)
  const faults = [
    ...(hasProgram(folders.bin) ? [] : [`${plugin} is missing or of another version`]),
    ...(hasChain(folders.conf, chainOf(file, keys))
      ? []
      : [`${own} is missing, or ${file.path} or an option has changed since`]),
  ]
  for (const fault of faults) output.stdout(`${fault}: run ${program()} cni install\n`)
  if (faults.length > 0) return EXIT_NEGATIVE
  output.stdout(`installed: ${PLUGIN} runs behind the plugins of ${file.path}\n`)
  return EXIT_OK
}

function uninstall(folders: Folders, keepsProgram: boolean, output: CommandOutput): number {
  if (remove(folders.conf, OWN_FILE)) output.stdout(`removed ${join(folders.conf, OWN_FILE)}\n`)
  if (!keepsProgram && remove(folders.bin, PLUGIN)) {
    output.stdout(`removed ${join(folders.bin, PLUGIN)}\n`)
  }
  return EXIT_OK
}
