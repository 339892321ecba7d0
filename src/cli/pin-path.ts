// Where the pins are, by the config file but without asking whether the rest of it is right: break glass must
// be quick, and must work with a config that would keep the daemon from starting.

import { readFileSync } from 'node:fs'
import { DEFAULT_PIN_PATH } from '../config/config.ts'
import { pathFrom } from '../config/files.ts'
import { parseYamlDocument } from '../config/yaml-source.ts'

/** What `datapath.kind` says; throws when the file can't be read. */
export function readDatapathKind(file: string): unknown {
  const { document } = parseYamlDocument(readFileSync(file, 'utf8'), file)
  return fieldOf(fieldOf(document?.value, 'datapath'), 'kind')
}

/** The pin path when the datapath is eBPF; undefined for any other. Throws when the file can't be read. */
export function readPinPath(file: string): string | undefined {
  const { document } = parseYamlDocument(readFileSync(file, 'utf8'), file)
  const datapath = fieldOf(document?.value, 'datapath')
  if (fieldOf(datapath, 'kind') !== 'ebpf') return undefined
  const path = fieldOf(fieldOf(datapath, 'ebpf'), 'pin-path')
  return typeof path === 'string' ? pathFrom(file, path) : DEFAULT_PIN_PATH
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
