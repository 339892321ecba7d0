// This file runs nft(8) and ip(8). A tool runs asynchronously and off the packet path, so DNS answers continue while it works.
// Each tool has a time limit. An error of a tool becomes one line with the remedy.

import { spawn } from 'node:child_process'
import { systemClock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'

export type Tool = 'nft' | 'ip' | 'sh'

export interface ToolResult {
  /** -1: the tool could not be started, or a signal ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export type RunTool = (tool: Tool, args: readonly string[], input?: string) => Promise<ToolResult>

const NOT_FOUND = 'ENOENT'
/** A tool lists the rules of 100,000 services in a few seconds. */
const TOOL_LIMIT_MS = 30_000
/** Folders of administrators' tools, which not every user's path contains. */
const MORE_PATHS = '/usr/local/sbin:/usr/sbin:/sbin'
const PACKAGES: Readonly<Record<Tool, string>> = {
  nft: 'nftables',
  ip: 'iproute2',
  sh: 'dash',
}

/** Returns a runner that ends a tool after `limitMs` milliseconds and then rejects with UnavailableError. */
export function toolRunner(limitMs: number): RunTool {
  return async (tool, args, input = '') =>
    await new Promise((done, fail) => {
      const env = {
        ...process.env,
        LC_ALL: 'C',
        PATH: `${process.env['PATH'] ?? ''}:${MORE_PATHS}`,
      }
      const child = spawn(tool, [...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
      const limit = systemClock.after(limitMs, () => {
        child.kill('SIGKILL')
        // A process that the tool started can still hold the other ends of the pipes.
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
        fail(tooSlow(tool, limitMs))
      })
      let [stdout, stderr] = ['', '']
      child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
      child.stdin.on('error', () => undefined)
      child.on('error', (error) => {
        limit.cancel()
        const wasFound = !('code' in error) || error.code !== NOT_FOUND
        done({ code: -1, stdout: '', stderr: wasFound ? error.message : NOT_FOUND })
      })
      child.on('close', (code) => {
        limit.cancel()
        done({ code: code ?? -1, stdout, stderr })
      })
      child.stdin.end(input)
    })
}

export const runTool = toolRunner(TOOL_LIMIT_MS)

function tooSlow(tool: Tool, limitMs: number): UnavailableError {
  const remedy = 'try again, and look for a process that holds up nftables or routing'
  return new UnavailableError(
    `Cannot run ${tool}: it did not end within ${limitMs} ms and was ended: ${remedy}`,
  )
}

/** Runs a tool that must succeed. Returns its stdout. */
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

/** True if the tool is not installed. */
export function isMissing({ stderr }: ToolResult): boolean {
  return stderr === NOT_FOUND
}

/** Returns one line with the failure and the remedy. */
export function toolError(
  tool: Tool,
  args: readonly string[],
  result: ToolResult,
): UnavailableError {
  const { stderr } = result
  if (isMissing(result)) {
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
    return ': the kernel lacks it; it needs nftables with tproxy, fib, nat, redir and socket (modprobe nft_tproxy nft_fib_inet nft_redir nft_socket)'
  }
  return ''
}
