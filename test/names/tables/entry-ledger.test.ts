// The ledger, compared with what a reader of the records would know.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EntryLedger } from '../../../src/names/tables/entry-ledger.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const ROWS = 12

/** A table of entries, its ledger, and the written records. */
class Book {
  readonly ledger = new EntryLedger({ capacity: ROWS })
  readonly live = new Map<number, { version: number; until: number }>()
  readonly records = new Map<number, { version: number; until: number }>()
  now = 1000
  written = 0

  write(): void {
    for (let row = this.ledger.take(); row !== 0; row = this.ledger.take()) {
      const entry = this.live.get(row)
      const due = this.ledger.due(row, entry !== undefined)
      if (due !== 'none') this.written++
      if (due === 'gone') this.records.delete(row)
      if (entry === undefined || due === 'gone' || due === 'none') continue
      const until = this.ledger.cover(row, entry.until, this.now)
      const known = this.records.get(row)
      assert.ok(due === 'whole' || known !== undefined, 'only a recorded entry gets a short record')
      const version = due === 'whole' ? entry.version : (known?.version ?? -1)
      this.records.set(row, { version, until })
    }
  }

  check(): void {
    assert.deepEqual(new Set(this.records.keys()), new Set(this.live.keys()))
    for (const [row, { version, until }] of this.live) {
      const record = this.records.get(row)
      assert.equal(record?.version, version, 'the record is about this entry')
      const length = Math.max(0, until - this.now)
      assert.ok(record.until >= until, 'never shorter than the entry lives')
      assert.ok(record.until <= until + length / 16 + 60, 'and not much longer')
    }
  }
}

test('EntryLedger writes records that cover every entry, and no removed one', () => {
  const random = new Random(11)
  const book = new Book()
  for (let step = 0; step < runsOf(30_000); step++) {
    const row = 1 + random.below(ROWS)
    const entry = book.live.get(row)
    const choice = random.below(8)
    if (choice < 3 && entry === undefined) {
      const until = book.now + random.below(600)
      book.live.set(row, { version: step, until })
      book.ledger.changed(row)
      book.ledger.prolonged(row, until)
    } else if (choice < 5 && entry !== undefined) {
      entry.until = Math.max(entry.until, book.now + random.below(600))
      book.ledger.prolonged(row, entry.until)
    } else if (choice === 5 && entry !== undefined) {
      book.live.delete(row)
      book.ledger.removed(row)
    } else if (choice === 6) {
      book.now += random.below(3)
    } else {
      book.write()
      book.check()
    }
  }
})

test('EntryLedger needs no record while the one before covers the entry', () => {
  const book = new Book()
  book.live.set(1, { version: 1, until: book.now + 320 })
  book.ledger.changed(1)
  book.write()
  assert.equal(book.written, 1)
  for (let second = 1; second <= 21; second++) {
    book.now++
    book.ledger.prolonged(1, book.now + 320)
    book.write()
  }
  assert.equal(book.written, 1, 'after a sixteenth of 320 s, one more')
  book.now++
  book.ledger.prolonged(1, book.now + 320)
  assert.equal(book.ledger.waiting, 1)
})

test('EntryLedger knows entries that an image recorded before the journal', () => {
  const ledger = new EntryLedger({ capacity: 2 })
  ledger.changed(1)
  ledger.prolonged(1, 50)
  assert.equal(ledger.imaged(1, 50), 50)
  ledger.removed(1)
  assert.equal(ledger.take(), 1)
  assert.equal(ledger.due(1, false), 'gone', 'the image has it')
  ledger.changed(2)
  ledger.removed(2)
  assert.equal(ledger.take(), 2)
  assert.equal(ledger.due(2, false), 'none', 'no file has it')
})

test('EntryLedger gives an image the time that records promised', () => {
  const ledger = new EntryLedger({ capacity: 1 })
  ledger.changed(1)
  assert.equal(ledger.take(), 1)
  assert.equal(ledger.due(1, true), 'whole')
  const covered = ledger.cover(1, 420, 100)
  assert.equal(covered, 420 + 20 + 1)
  assert.equal(ledger.imaged(1, 420), covered)
})
