import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Message } from '../../../../src/datapath/nftables/netlink/message.ts'
import { BODY, Reader } from '../../../../src/datapath/nftables/netlink/reader.ts'
import { Elements } from '../../../../src/datapath/nftables/netlink/sets.ts'
import { ALL_FORMS, type RuleForm } from '../../../../src/datapath/nftables/rules/form.ts'
import { encodeInstall } from '../../../../src/datapath/nftables/rules/install.ts'

const SUBSYSTEM = 10 << 8
const NEW_RULE = SUBSYSTEM | 6
const NEW_SET = SUBSYSTEM | 9
const SET = { name: 2, flags: 3, isMap: 8 }
const RULE = { chain: 2, expressions: 4 }
const EXPRESSION = { name: 1, data: 2 }
const LOOKUP = { set: 1, destination: 3 }

/** The lookups in maps of the installed rules: chain and map, and whether the lookup has a place for the data. */
function lookupsInMaps(form: RuleForm): readonly { readonly at: string; readonly into: boolean }[] {
  const message = new Message()
  const elements = new Elements(message)
  message.beginBatch()
  encodeInstall(message, elements, form)
  message.endBatch(elements.last)
  const reader = new Reader(message.octets)
  const text = (from: number, to: number, type: number): string => {
    let found = ''
    reader.attributes(from, to, (each, at, end) => {
      if (each === type) found = reader.text(at, end)
    })
    return found
  }
  const maps = new Set<string>()
  const found: { at: string; into: boolean }[] = []
  reader.messages(message.size, (kind, _, from, to) => {
    const body = from + BODY
    if (kind === NEW_SET) {
      const flags = reader.find(body, to, SET.flags)
      if (flags >= 0 && (reader.u32(flags) & SET.isMap) !== 0) maps.add(text(body, to, SET.name))
    }
    if (kind !== NEW_RULE) return
    const chain = text(body, to, RULE.chain)
    reader.attributes(body, to, (type, list, listEnd) => {
      if (type !== RULE.expressions) return
      reader.attributes(list, listEnd, (_type, each, end) => {
        if (text(each, end, EXPRESSION.name) !== 'lookup') return
        reader.attributes(each, end, (part, data, dataEnd) => {
          if (part !== EXPRESSION.data) return
          const set = text(data, dataEnd, LOOKUP.set)
          const into = reader.find(data, dataEnd, LOOKUP.destination) >= 0
          if (maps.has(set)) found.push({ at: `${chain}: ${set}`, into })
        })
      })
    })
  })
  return found
}

test('encodeInstall gives every lookup in a map a place for the data, which kernels before 6.5 need', () => {
  for (const form of ALL_FORMS) {
    const lookups = lookupsInMaps(form)
    assert.ok(lookups.length > 20, `${lookups.length} lookups`)
    assert.deepEqual(
      lookups.filter(({ into }) => !into).map(({ at }) => at),
      [],
    )
  }
})
