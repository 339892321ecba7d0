// Runs namegate-cni as a container runtime does: variables CNI_*, the network configuration on stdin, the result on stdout.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { nativeFile } from '../../../src/native/native-files.ts'
import type { Host } from '../labs/lab.ts'
import type { Output } from '../labs/lab-process.ts'

export const PLUGIN = nativeFile('namegate-cni')
export const POD = { namespace: 'shop', name: 'web-0', uid: 'b1b2c3d4-0000-4000-8000-000000000001' }
export const POD_ARGS = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${POD.namespace};K8S_POD_NAME=${POD.name};K8S_POD_INFRA_CONTAINER_ID=c0ffee;K8S_POD_UID=${POD.uid}`

/** The reason why the plugin cannot run here, or undefined. */
export function canRunPlugin(): string | undefined {
  return existsSync(PLUGIN) ? undefined : `${PLUGIN} is not built`
}

export interface Call {
  readonly command: string
  /** stdin: an object, or the text itself. */
  readonly network: object | string | Buffer
  readonly env?: Readonly<Record<string, string>>
}

/** The error answer of the plugin. */
export interface Refusal {
  readonly cniVersion: string
  readonly code: number
  readonly msg: string
  readonly details: string
}

/** Runs the plugin to its end. The call blocks this process. */
export function callPlugin(call: Call): Output {
  const { status, stdout, stderr } = spawnSync(PLUGIN, {
    env: variables(call),
    input: inputOf(call),
    encoding: 'utf8',
    timeout: 30_000,
    maxBuffer: 4 << 20,
  })
  return { code: status ?? -1, stdout, stderr }
}

/** Runs the plugin while this process can answer it; on a host if the call names one. */
export async function runPlugin(call: Call, host?: Host): Promise<Output> {
  const net = host === undefined ? [] : [`--net=/run/netns/${host.namespace}`, '--']
  const [command = PLUGIN, ...args] = host === undefined ? [PLUGIN] : ['nsenter', ...net, PLUGIN]
  const child = spawn(command, args, { env: { ...variables(call), PATH: process.env['PATH'] } })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.on('error', () => undefined).end(inputOf(call))
  const code = await new Promise<number>((resolve) =>
    child.once('close', (status) => resolve(status ?? -1)),
  )
  return { code, stdout, stderr }
}

export function refusalOf(output: Output): Refusal {
  return JSON.parse(output.stdout) as Refusal
}

function variables({ command, env }: Call): Record<string, string> {
  return { CNI_COMMAND: command, CNI_CONTAINERID: 'c0ffee', CNI_ARGS: POD_ARGS, ...env }
}

function inputOf({ network }: Call): string | Buffer {
  return typeof network === 'string' || Buffer.isBuffer(network) ? network : JSON.stringify(network)
}
