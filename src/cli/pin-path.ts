// `readPinPath` reads the pin path from the config file without checking the rest of the file. Break-glass mode must be quick, and must
// work with a config with which the daemon refuses to start.

import { InvalidInputError } from '../core/errors.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'
import { pathFrom, readTextFile } from '../config/files.ts'
import { parseYamlDocument } from '../documents/yaml-source.ts'

/** Returns the value of `datapath.kind`, whatever it is. Throws InvalidInputError if the file cannot be read. */
export function readDatapathKind(file: string): unknown {
  return fieldOf(readDatapath(file), 'kind')
}

/** Returns the pin path if the datapath is eBPF, else undefined. Throws InvalidInputError if the file cannot be read. */
export function readPinPath(file: string): string | undefined {
  const datapath = readDatapath(file)
  if (fieldOf(datapath, 'kind') !== 'ebpf') return undefined
  const path = fieldOf(fieldOf(datapath, 'ebpf'), 'pin-path')
  return typeof path === 'string' ? pathFrom(file, path) : DEFAULT_PIN_PATH
}

function readDatapath(file: string): unknown {
  const read = readTextFile(file)
  if (read.kind === 'bad') throw new InvalidInputError([read.fault])
  return fieldOf(parseYamlDocument(read.text, file).document?.value, 'datapath')
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
