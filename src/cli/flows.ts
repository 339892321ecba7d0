// `namegate flows`: DNS decisions and datapath drops, those kept and those that come, a line each.

import { openClient } from './client.ts'
import { EXIT_OK, readArguments, usageError, type CommandOutput } from './command.ts'
import { fieldsOf, listOf, rowsIn, textOf, type Fields } from './fields.ts'
import { cleanCell } from './table.ts'

const HELP = `Usage: namegate flows [--follow] [--verdict VERDICT] [--last N] [-o json] [--config FILE | --socket PATH]

DNS decisions, packets that were dropped or would have been, and events: the last 65,536, oldest first.

Options:
  -f, --follow      go on with what comes
  --verdict VERDICT only those: allow, deny, audit, error, event; or one kind: answered, denied, drop ...
  --last N          of those kept only the last N
  -o json           one JSON object a line
  --config FILE     config that names the daemon's socket
  --socket PATH     the daemon's socket
  -h, --help        this text

Exit codes: 0 ok, 2 wrong use, 3 no daemon.

Examples:
  namegate flows --follow --verdict deny
  namegate flows -o json | jq -r 'select(.kind == "denied") | .name' | sort | uniq -c
`

export async function flowsCommand(
  args: readonly string[],
  output: CommandOutput,
): Promise<number> {
  const read = readArguments(args, HELP, output, {
    follow: { type: 'boolean', short: 'f' },
    verdict: { type: 'string' },
    last: { type: 'string' },
    socket: { type: 'string' },
  })
  if (typeof read === 'number') return read
  if (read.positionals.length > 0) return usageError('flows takes no argument', HELP, output)
  const query = new URLSearchParams()
  if (read.flags.has('follow')) query.set('follow', '1')
  for (const name of ['verdict', 'last']) {
    const value = read.texts.get(name)
    if (value !== undefined) query.set(name, value)
  }
  const parts = await (await openClient(read)).open(`/v1/flows?${query.toString()}`)
  if (read.texts.has('output')) {
    for await (const part of parts) output.stdout(part)
  } else {
    for await (const flow of rowsIn(parts)) output.stdout(`${formatFlow(flow)}\n`)
  }
  return EXIT_OK
}

/** `2026-01-02T03:04:05.678Z deny   shop  TCP 198.51.100.9:443 dropped: policy; identity 9 [...]` */
export function formatFlow(flow: Fields): string {
  const head = [
    textOf(flow['time']),
    textOf(flow['verdict']).padEnd(5),
    textOf(flow['endpoint']).padEnd(12),
  ]
  return cleanCell([...head, detailsOf(flow)].join(' '))
}

function detailsOf(flow: Fields): string {
  switch (flow['kind']) {
    case 'drop':
    case 'audit':
      return packetDetails(flow)
    case 'policy-lost':
      return `lost its last policy: ${textOf(flow['policies'])}`
    case 'answered': {
      const taught =
        flow['addresses'] === 1 ? '1 address' : `${textOf(flow['addresses'])} addresses`
      return `${question(flow)} ${textOf(flow['rcode'])}, ${textOf(flow['outcome'])}, ${taught}`
    }
    default: {
      const why = typeof flow['reason'] === 'string' ? `: ${flow['reason']}` : ''
      return `${question(flow)} ${textOf(flow['kind'])}${why}${byWhom(flow)}, client ${textOf(flow['client'])}`
    }
  }
}

function question(flow: Fields): string {
  return `${textOf(flow['type'])} ${textOf(flow['name'])}`
}

function packetDetails(flow: Fields): string {
  const peer = textOf(flow['peer'])
  const to = peer.includes(':') ? `[${peer}]` : peer
  const what = flow['kind'] === 'drop' ? 'dropped' : 'would be dropped'
  const names = listOf(flow['names']).map(textOf)
  const named = names.length === 0 ? '' : ` (${names.join(', ')})`
  const who = `identity ${textOf(flow['identity'])} [${textOf(flow['labels'])}]`
  return `${textOf(flow['protocol'])} ${to}:${textOf(flow['port'])}${named} ${what}: ${textOf(flow['reason'])}${byWhom(flow)}; ${who}`
}

/** ` by default/web (web.yaml:12)`: what denied it, or would have. */
function byWhom(flow: Fields): string {
  const rules = listOf(flow['rules']).map((rule) => {
    const { policy, file, line } = fieldsOf(rule)
    return `${textOf(policy)} (${textOf(file)}:${textOf(line)})`
  })
  return rules.length === 0 ? '' : ` by ${rules.join(', ')}`
}
