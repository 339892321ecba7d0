// An imaginary next version: this one, with the next format of state files, the next rules for labels and the next layout of the eBPF
// maps. It reads today's formats. For tests of an upgrade and the way back.

import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { LAYOUT_VERSION, MAP_SHAPES } from '../../../src/datapath/ebpf/maps/layout.ts'
import { FORMAT_VERSION } from '../../../src/state/files/file-format.ts'

const MAPS = [...Object.keys(MAP_SHAPES), 'ng_events', 'ng_rate']
/** Of `build`, only what the program runs: other folders there can be whole systems of npm run packages. */
const COPIED = [
  'bin',
  'src',
  'build/Release',
  'build/namegate.bpf.o',
  'build/namegate-gate.bpf.o',
  'package.json',
  'tsconfig.json',
]
/** File, the text in it, and the replacement. */
const CHANGES: readonly (readonly [file: string, found: RegExp, text: string])[] = [
  [
    'datapath/ebpf/maps/layout.ts',
    /LAYOUT_VERSION = \d+/,
    `LAYOUT_VERSION = ${LAYOUT_VERSION + 1}`,
  ],
  [
    'datapath/ebpf/maps/layouts.ts',
    /(?<=ALIKE: .*) = \{[^}]*\}/,
    ` = { ${LAYOUT_VERSION}: ${JSON.stringify(MAPS)} }`,
  ],
  ['state/files/file-format.ts', /FORMAT_VERSION = \d+/, `FORMAT_VERSION = ${FORMAT_VERSION + 1}`],
  ['ipcache/derive.ts', /'reserved:world-ipv4'(?=\])/, "'reserved:world-inet'"],
  [
    'identity/label-rules.ts',
    /(?<=STEPS: .*) = \[\]/,
    " = [(labels) => labels.map((label) => label.replace(/world-ipv4$/, 'world-inet'))]",
  ],
  [
    'state/files/record-reader.ts',
    /(?<=READERS: .*) = \{/,
    ` = { ${FORMAT_VERSION + 1}: readRecordsV1,`,
  ],
]

export class NextVersion {
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-next-'))

  constructor() {
    for (const name of COPIED) {
      cpSync(resolve(name), join(this.#folder, name), { recursive: true })
    }
    symlinkSync(resolve('node_modules'), join(this.#folder, 'node_modules'))
    for (const [file, found, text] of CHANGES) {
      const path = join(this.#folder, 'src', file)
      const before = readFileSync(path, 'utf8')
      if (!found.test(before)) throw new Error(`${path}: expected ${String(found)}`)
      writeFileSync(path, before.replace(found, text))
    }
  }

  get command(): string {
    return join(this.#folder, 'bin/namegate')
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
