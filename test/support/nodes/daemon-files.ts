// The files that a daemon reads in tests: policies and endpoints as texts, and a folder that changes like a mounted ConfigMap.

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own; the caller removes it. */
export function mkFolder(): string {
  return mkdtempSync(join(tmpdir(), 'namegate-daemon-'))
}

/** A policy that lets its endpoints ask and reach only these names. */
export function policyText(
  name: string,
  names: readonly string[],
  selector: Readonly<Record<string, string>> = {},
): string {
  const matches = names.map((each) =>
    each.includes('*') ? { matchPattern: each } : { matchName: each },
  )
  return [
    'apiVersion: cilium.io/v2',
    'kind: CiliumNetworkPolicy',
    `metadata: { name: ${name} }`,
    'spec:',
    `  endpointSelector: ${JSON.stringify({ matchLabels: selector })}`,
    '  egress:',
    `    - toPorts: [{ ports: [{ port: '53' }], rules: { dns: ${JSON.stringify(matches)} } }]`,
    ...matches.map((match) => `    - toFQDNs: [${JSON.stringify(match)}]`),
    '',
  ].join('\n')
}

/** An endpoints file: name -> address. By default, every endpoint has the label `app: NAME`. */
export function endpointsText(
  addresses: Readonly<Record<string, string>>,
  app: (name: string) => string = (name) => name,
): string {
  const list = Object.entries(addresses).map(
    ([name, address]) =>
      `  - { name: ${name}, addresses: [${address}], labels: { app: ${app(name)} } }\n`,
  )
  return list.length === 0 ? 'endpoints: []\n' : `endpoints:\n${list.join('')}`
}

/** A folder whose files are links into `..data`, which is replaced as the kubelet does it. */
export class MountedFolder {
  readonly path: string
  #version = 0

  constructor(path: string, files: Readonly<Record<string, string>>) {
    this.path = path
    mkdirSync(path)
    this.publish(files)
  }

  /**
   * Writes the new files to a folder of their own, renames `..data` over the old one, makes and removes links, and removes the
   * old folder.
   */
  publish(files: Readonly<Record<string, string>>): void {
    const before = `..${this.#version}`
    const now = `..${++this.#version}`
    mkdirSync(join(this.path, now))
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(this.path, now, name), text)
    }
    symlinkSync(now, join(this.path, '..data_tmp'))
    renameSync(join(this.path, '..data_tmp'), join(this.path, '..data'))
    const links = readdirSync(this.path).filter((name) => !name.startsWith('.'))
    for (const name of Object.keys(files)) {
      if (!links.includes(name)) symlinkSync(join('..data', name), join(this.path, name))
    }
    for (const name of links) if (!(name in files)) rmSync(join(this.path, name))
    rmSync(join(this.path, before), { recursive: true, force: true })
  }
}
