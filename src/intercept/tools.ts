// nft(8) and ip(8) as a port. Off the packet path and asynchronous, so that answers continue while a tool works. An error of a
// tool becomes one line with the remedy.

import { spawn } from 'node:child_process'
import { UnavailableError } from '../core/errors.ts'

export type Tool = 'nft' | 'ip' | 'sh'

export interface ToolResult {
  /** -1: it could not be started, or a signal ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export type RunTool = (tool: Tool, args: readonly string[], input?: string) => Promise<ToolResult>

const NOT_FOUND = 'ENOENT'
/** Folders of administrators' tools, which are not in every user's path. */
const MORE_PATHS = '/usr/local/sbin:/usr/sbin:/sbin'
const PACKAGES: Readonly<Record<Tool, string>> = {
  nft: 'nftables',
  ip: 'iproute2',
  sh: 'dash',
}

export const runTool: RunTool = async (tool, args, input = '') =>
  await new Promise((done) => {
    const env = { ...process.env, LC_ALL: 'C', PATH: `${process.env['PATH'] ?? ''}:${MORE_PATHS}` }
    const child = spawn(tool, [...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.stdin.on('error', () => undefined)
    child.on('error', (error) => {
      const isMissing = 'code' in error && error.code === NOT_FOUND
      done({ code: -1, stdout: '', stderr: isMissing ? NOT_FOUND : error.message })
    })
    child.on('close', (code) => done({ code: code ?? -1, stdout, stderr }))
    child.stdin.end(input)
  })

/** Runs a tool that must succeed; returns its stdout. */
export async function mustRun(
  run: RunTool,
  tool: Tool,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const result = await run(tool, args, input)
  if (result.code !== 0) throw toolError(tool, args, result)
  return result.stdout
}

/** One line with the failure and the remedy. */
export function toolError(
  tool: Tool,
  args: readonly string[],
  { stderr }: ToolResult,
): UnavailableError {
  if (stderr === NOT_FOUND) {
    return new UnavailableError(
      `Cannot run ${tool}: it is not installed: apt-get install ${PACKAGES[tool]}`,
    )
  }
  const [refused] = /operation not permitted|permission denied|must be root/i.exec(stderr) ?? []
  if (refused !== undefined) {
    return new UnavailableError(
      `Cannot use ${tool} in this network namespace: ${refused}: run as root or with CAP_NET_ADMIN`,
    )
  }
  const said = firstWords(stderr)
  return new UnavailableError(`Cannot ${[tool, ...args].join(' ')}: ${said}${remedyFor(said)}`)
}

function firstWords(stderr: string): string {
  const line = stderr.split('\n').find((each) => each.trim() !== '') ?? 'it says nothing'
  return line.trim().slice(0, 200)
}

function remedyFor(said: string): string {
  if (/not supported|no such file or directory|unknown/i.test(said)) {
    return ': the kernel lacks it; it needs nftables with tproxy, fib, nat and redir (modprobe nft_tproxy nft_fib_inet nft_redir)'
  }
  return ''
}
