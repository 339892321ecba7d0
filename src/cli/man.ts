// Makes the man pages, in the macros of man(7): namegate(1) from the definitions of the commands, and namegate.yaml(5) from the JSON Schema
// of the configuration. The functions have no side effects.

import { fieldsOf, isFields, textOf } from './fields.ts'
import { leavesOf, optionRows, SHARED_TEXT, usageOf, type CommandTexts } from './reference.ts'

/** Returns namegate(1). */
export function commandPage(specs: readonly CommandTexts[], version: string): string {
  return withoutEmpty(`${titleOf('NAMEGATE', 1, version)}
.SH NAME
namegate \\- DNS proxy that lets workloads reach only the names that policy allows
.SH SYNOPSIS
.B namegate
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
${proseOf(SHARED_TEXT)}.SH COMMANDS
${leavesOf(specs).map(commandSection).join('')}.SH FILES
${itemsOf([
  ['config/namegate.yaml', 'the configuration, in the working directory'],
  ['/etc/namegate/namegate.yaml', 'the configuration, if there is none in the working directory'],
  ['/run/namegate/admin.sock', 'the socket of the daemon, if no configuration is found'],
])}.SH ENVIRONMENT
${itemsOf([
  ['NAMEGATE_CONFIG', 'path of the configuration, if --config is not given'],
  ['NAMEGATE_SOCKET', 'path of the socket of the daemon, if --socket is not given'],
])}.SH SEE ALSO
.BR namegate.yaml (5)
`)
}

function commandSection(spec: CommandTexts): string {
  const usage = usageOf(spec)
    .split('\n')
    .map((line) => `.br\n.B ${roff(line.replace(/^(Usage:)?\s+/, ''))}\n`)
    .join('')
  const codes = spec.exitCodes === '' ? '' : `.PP\nExit codes: ${filled(spec.exitCodes)}\n`
  const examples = spec.examples.map((each) => roff(each)).join('\n')
  return `.SS ${spec.name}
.PP
${usage.replace(/^\.br\n/, '')}${proseOf(spec.about)}.PP
Options:
${itemsOf(optionRows(spec))}${codes}.PP
Examples:
.PP
.nf
${examples}
.fi
`
}

/** Returns namegate.yaml(5). `schema` is the JSON Schema of the configuration. */
export function configPage(schema: unknown, version: string): string {
  const keys = propertiesOf(schema).map(([key, of]) => {
    const rows = rowsOf(key, of)
    const about = propertiesOf(of).length > 0 ? `${proseOf(describe(of))}` : ''
    const items = rows.map(({ key: name, standard, about: text }) => {
      const end = standard === '' ? '' : ` Default: ${standard}.`
      return [name, `${text.replace(/\.?$/, '.')}${end}`] as const
    })
    return `.SS ${roff(key)}\n${about}${itemsOf(items)}`
  })
  return withoutEmpty(`${titleOf('NAMEGATE.YAML', 5, version)}
.SH NAME
namegate.yaml \\- configuration of namegate
.SH DESCRIPTION
${proseOf(`The file is YAML. Every key has a default, so an empty file is valid. An unknown key is an error. A key with a dot is inside its group:
dns.min-ttl is min-ttl under dns. [] after a key means each item of a list. 'namegate config check FILE' checks a file, and
'namegate config schema' prints the keys as JSON Schema.`)}.SH KEYS
${keys.join('')}.SH EXAMPLE
.nf
listeners: [{ address: 127.0.0.1, port: 53, mode: explicit }]
upstreams: { servers: ["9.9.9.9:53"] }
policies: { paths: [/etc/namegate/policies] }
endpoints: { files: [/etc/namegate/endpoints.yaml] }
default\\-egress: deny
datapath: { kind: ebpf }
.fi
.SH FILES
${itemsOf([['/etc/namegate/namegate.yaml', 'where the commands and the systemd units look for the file']])}.SH SEE ALSO
.BR namegate (1)
`)
}

interface KeyRow {
  readonly key: string
  /** '' if the key has no default. */
  readonly standard: string
  readonly about: string
}

/** Returns a row for a key, or the rows of what is in it. */
function rowsOf(key: string, of: unknown): readonly KeyRow[] {
  const inner = propertiesOf(of).flatMap(([name, each]) => rowsOf(`${key}.${name}`, each))
  if (inner.length > 0) return inner
  const items = propertiesOf(fieldsOf(of)['items'])
  const below = items.flatMap(([name, each]) => rowsOf(`${key}[].${name}`, each))
  const { default: standard } = fieldsOf(of)
  const json = JSON.stringify(standard, null, 1)?.replaceAll(/\s+/g, ' ')
  const text = typeof standard === 'string' ? standard : (json ?? '')
  // The description ends with unit and default. The default is shown apart from it.
  const about = describe(of).replace(/[;(] ?default .*\)\.$/s, (end) =>
    end[0] === ';' ? ').' : '',
  )
  return [{ key, standard: text, about }, ...below]
}

function propertiesOf(schema: unknown): readonly (readonly [string, unknown])[] {
  const { properties } = fieldsOf(schema)
  return isFields(properties) ? Object.entries(properties) : []
}

function describe(schema: unknown): string {
  const { description = '' } = fieldsOf(schema)
  return textOf(description).trim()
}

/** The date is left out, so that the page of one version is always the same. */
function titleOf(name: string, section: number, version: string): string {
  return `.TH ${name} ${section} "" "namegate ${version}"`
}

/**
 * Returns paragraphs. In a paragraph with columns, such as `up    adds the rules`, each line becomes an item. Other paragraphs with indented
 * lines stay as they are.
 */
function proseOf(text: string): string {
  return text
    .split(/\n\n+/)
    .map((block) => {
      if (!/^ | {2}/m.test(block)) return `.PP\n${filled(block)}\n`
      return withColumns(block) ?? `.PP\n.nf\n${roff(block)}\n.fi\n`
    })
    .join('')
}

/** Undefined if some line is neither a row of two columns nor the rest of one. */
function withColumns(block: string): string | undefined {
  const lead: string[] = []
  const items: (readonly [string, string])[] = []
  for (const line of block.split('\n')) {
    const [, name, about] = /^ {0,2}(\S.*?) {2,}(\S.*)$/.exec(line) ?? []
    const last = items.at(-1)
    if (name !== undefined && about !== undefined) items.push([name, about])
    else if (last === undefined && !line.startsWith(' ')) lead.push(line)
    else if (last === undefined || !/^ {3}/.test(line)) return undefined
    else items[items.length - 1] = [last[0], `${last[1]} ${line.trim()}`]
  }
  const first = lead.length === 0 ? '' : `.PP\n${filled(lead.join('\n'))}\n`
  return `${first}${itemsOf(items)}`
}

function itemsOf(rows: readonly (readonly [name: string, about: string])[]): string {
  return rows.map(([name, about]) => `.TP\n.B ${roff(name)}\n${filled(about)}\n`).join('')
}

/** Text that roff fills. Its lines are short, and have no blanks at their ends. */
function filled(text: string): string {
  const lines: string[] = []
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= LINE_MAX) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return roff(lines.join('\n'))
}

/** Characters in a line of the source of a page. */
const LINE_MAX = 76

/** Returns the text with everything escaped that roff would read as a macro or an escape. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1')
}

/** roff begins a paragraph after a title by itself. */
function withoutEmpty(page: string): string {
  return page.replaceAll(/^(\.S[HS] .*\n)\.PP\n/gm, '$1')
}
