// Step 3 of action.yml: prints the job summary as Markdown, from the report and the suggested policy of `namegate exec`.
//   node deploy/action/summary.mjs REPORT POLICY
// Names come from the command, so they are printed as code from which the characters with a meaning in Markdown are removed.

import { readFileSync } from 'node:fs'

const ROWS_MAX = 200
const [, , reportFile, policyFile] = process.argv
const text = readFileSync(reportFile, 'utf8')
process.stdout.write(
  text === '' ? notRun() : summary(JSON.parse(text), readFileSync(policyFile, 'utf8')),
)

function notRun() {
  return '### namegate\n\nThe command did not run. The log of the step has the reason.\n'
}

function summary(report, policy) {
  const names = report.names.filter(({ verdict }) => verdict === 'denied' || verdict === 'audited')
  const rows = [
    ...names.map(({ name, asked, allow }) => [name, asked, allow === null ? [] : [allow]]),
    ...report.refused.map(({ address, port, protocol, packets, allow }) => [
      `${address.includes(':') ? `[${address}]` : address}:${port}/${protocol.toLowerCase()}`,
      packets,
      allow,
    ]),
  ]
  const verb = report.audit ? 'would be refused' : 'was refused'
  if (rows.length === 0) {
    return `### namegate\n\nNothing ${verb}. The command asked for ${report.names.length} names.\n`
  }
  const lines = rows
    .slice(0, ROWS_MAX)
    .map(
      ([what, count, allow]) =>
        `| ${code(what)} | ${Number(count)} | ${allow.map(code).join(' or ')} |`,
    )
  const more = rows.length > ROWS_MAX ? [`\nand ${rows.length - ROWS_MAX} more`] : []
  return [
    `### namegate: what ${verb}`,
    '',
    '| name or connection | count | would allow it |',
    '|---|---|---|',
    ...lines,
    ...more,
    '',
    '<details><summary>A policy that allows everything that this run asked and reached</summary>',
    '',
    'Read it before you use it: it also allows what was refused.',
    '',
    '````yaml',
    policy.replaceAll('`', '').trimEnd(),
    '````',
    '',
    '</details>',
    '',
  ].join('\n')
}

function code(value) {
  return `\`${String(value).replaceAll(/[`|\\<>\r\n]/g, '?')}\``
}
