// Checks the kernel objects as kernels before 6.8 do: there, an instruction that is no jump must not lead to one that is still being
// followed. Such a loop is refused before it is verified, although it ends. Newer kernels take it.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { nativeFile } from '../../../src/native/native-files.ts'

const OBJECTS = ['namegate.bpf.o', 'namegate-gate.bpf.o']
const missing = OBJECTS.find((name) => !existsSync(nativeFile(name)))
const skip = missing === undefined ? false : `${missing} is not built`

const SECTION_OCTETS = 64
const SYMBOL_OCTETS = 24
const INSTRUCTION_OCTETS = 8
const SYMBOL_TABLE = 2
const FUNCTION = 2
const JUMP_CLASSES = [5, 6]
const [ALWAYS, CALL, EXIT] = [0x00, 0x80, 0x90]

interface Program {
  readonly name: string
  readonly code: Buffer
}

/** The functions of an object in ELF. */
function programsOf(file: string): readonly Program[] {
  const octets = readFileSync(file)
  const sections = Number(octets.readBigUInt64LE(40))
  const section = (index: number): { type: number; link: number; at: number; size: number } => {
    const head = octets.subarray(sections + index * SECTION_OCTETS)
    const [type, link] = [head.readUInt32LE(4), head.readUInt32LE(40)]
    return {
      type,
      link,
      at: Number(head.readBigUInt64LE(24)),
      size: Number(head.readBigUInt64LE(32)),
    }
  }
  const all = Array.from({ length: octets.readUInt16LE(60) }, (_, i) => section(i))
  return all
    .filter(({ type }) => type === SYMBOL_TABLE)
    .flatMap(({ at, size, link }) =>
      Array.from({ length: size / SYMBOL_OCTETS }, (_, i) => {
        const symbol = octets.subarray(at + i * SYMBOL_OCTETS)
        if ((symbol.readUInt8(4) & 15) !== FUNCTION) return []
        const from = (all[link]?.at ?? 0) + symbol.readUInt32LE(0)
        const begin = (all[symbol.readUInt16LE(6)]?.at ?? 0) + Number(symbol.readBigUInt64LE(8))
        const name = octets.toString('latin1', from, octets.indexOf(0, from))
        return [{ name, code: octets.subarray(begin, begin + Number(symbol.readBigUInt64LE(16))) }]
      }).flat(),
    )
}

/** The instructions that can follow, in the kernel's order, and whether a loop may end there. */
function edgesOf(
  code: Buffer,
  at: number,
): readonly { readonly to: number; readonly loops: boolean }[] {
  const opcode = code.readUInt8(at * INSTRUCTION_OCTETS)
  const kind = JUMP_CLASSES.includes(opcode & 7) ? opcode & 0xf0 : CALL
  const target = { to: at + code.readInt16LE(at * INSTRUCTION_OCTETS + 2) + 1, loops: true }
  if (kind === EXIT) return []
  if (kind === CALL) return [{ to: at + 1, loops: false }]
  return kind === ALWAYS ? [target] : [{ to: at + 1, loops: true }, target]
}

/** The edge that a kernel before 6.8 refuses, or undefined. */
function refusedEdge(code: Buffer): string | undefined {
  const path = [{ at: 0, edges: edgesOf(code, 0).values() }]
  const open = new Set([0])
  const seen = new Set([0])
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const next = last.edges.next()
    if (next.done === true) {
      open.delete(last.at)
      path.pop()
      continue
    }
    const { to, loops } = next.value
    if (open.has(to) && !loops) return `from instruction ${last.at} to ${to}`
    if (seen.has(to)) continue
    seen.add(to)
    open.add(to)
    path.push({ at: to, edges: edgesOf(code, to).values() })
  }
  return undefined
}

test('The kernel objects have no loop that kernels before 6.8 refuse', { skip }, () => {
  for (const object of OBJECTS) {
    const programs = programsOf(nativeFile(object))
    assert.ok(programs.length > 0, object)
    for (const { name, code } of programs) assert.equal(refusedEdge(code), undefined, name)
  }
})
