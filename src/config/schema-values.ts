// Kinds of values of configuration keys, as zod schemas: each with its default, its text and what a fault reports as expected. The
// message of an issue is the expectation; with `params.whole` it is the whole sentence. A key of a feature that is not built
// accepts its default alone.

import { z } from 'zod'
import { listWords } from '../documents/source-document.ts'
import { parseAddress, parsePrefix } from '../core/ip.ts'
import {
  DURATION_FORM,
  DURATION_PATTERN,
  parseDuration,
  parseSize,
  SIZE_FORM,
  SIZE_PATTERN,
} from '../core/quantity.ts'
import { dottedName, USUAL_BPFFS } from '../core/pin-path.ts'

/** `built: false`: the key accepts its default alone. */
export interface KeyDoc<Value> {
  readonly default: Value
  readonly doc: string
  readonly built?: boolean
}

/** A value as messages show it. */
export function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function docOf<Value>(key: KeyDoc<Value>, unit: string): { description: string } {
  const later = key.built === false ? ' Not built yet: leave it at its default.' : ''
  return { description: `${key.doc} (${unit}; default ${show(key.default)}).${later}` }
}

/** For `refine`: the value is the default (written in another unit, perhaps), or its feature is built. */
function whenBuilt<Value>(key: KeyDoc<Value>, meaning: (value: Value) => unknown = same) {
  const wanted = JSON.stringify(meaning(key.default))
  return (value: Value): boolean => key.built !== false || JSON.stringify(meaning(value)) === wanted
}

function same(value: unknown): unknown {
  return value
}

function notBuilt<Value>(key: KeyDoc<Value>) {
  return {
    params: { notBuilt: true },
    error: `is not built yet; leave it at its default ${show(key.default)}`,
  }
}

export function flag(key: KeyDoc<boolean>) {
  return z
    .boolean()
    .refine(whenBuilt(key), notBuilt(key))
    .default(key.default)
    .meta(docOf(key, 'true or false'))
}

/** A whole number in a range; `unit` says of what. */
export function integer(
  key: KeyDoc<number> & { readonly min: number; readonly max: number; readonly unit: string },
) {
  const error = `a whole number from ${key.min} to ${key.max}`
  return z
    .int({ error })
    .min(key.min, { error })
    .max(key.max, { error })
    .refine(whenBuilt(key), notBuilt(key))
    .default(key.default)
    .meta(docOf(key, key.unit))
}

/** One of a few words; those in `later` are known but not built yet. */
export function oneOf<const Words extends readonly [string, ...string[]]>(
  words: Words,
  key: KeyDoc<Words[number]> & { readonly later?: readonly Words[number][] },
) {
  const isBuilt = (word: Words[number]): boolean =>
    whenBuilt(key)(word) && key.later?.includes(word) !== true
  return z
    .enum(words, { error: listWords(words) })
    .refine(isBuilt, notBuilt(key))
    .prefault(key.default)
    .meta(docOf(key, listWords(words)))
}

/** Text -> milliseconds, within a range in milliseconds. */
export function duration(key: KeyDoc<string> & { readonly min?: number; readonly max?: number }) {
  const [min, max] = [key.min ?? 0, key.max ?? Number.MAX_SAFE_INTEGER]
  const inRange = (text: string): boolean => {
    const ms = parseDuration(text)
    return ms !== undefined && ms >= min && ms <= max
  }
  const range = key.max === undefined && min === 0 ? '' : ` (${min}ms to ${max}ms)`
  return z
    .string({ error: DURATION_FORM })
    .regex(DURATION_PATTERN, { error: DURATION_FORM, abort: true })
    .refine(inRange, { error: `${DURATION_FORM}${range}`, abort: true })
    .refine(whenBuilt(key, parseDuration), notBuilt(key))
    .transform((text) => parseDuration(text) ?? 0)
    .prefault(key.default)
    .meta(docOf(key, 'duration: a whole number and ms, s, m, h or d'))
}

/** Text -> octets. */
export function size(key: KeyDoc<string>) {
  return z
    .string({ error: SIZE_FORM })
    .regex(SIZE_PATTERN, { error: SIZE_FORM, abort: true })
    .refine((text) => parseSize(text) !== undefined, { error: SIZE_FORM, abort: true })
    .refine(whenBuilt(key, parseSize), notBuilt(key))
    .transform((text) => parseSize(text) ?? 0)
    .prefault(key.default)
    .meta(docOf(key, 'size: a whole number and KiB, MiB or GiB'))
}

/** A text that isn't empty, such as a path, of the form of a pattern if there is one. */
export function text(key: KeyDoc<string> & { readonly unit: string; readonly pattern?: RegExp }) {
  return words(key.unit)
    .regex(key.pattern ?? /./s, { error: `a ${key.unit}` })
    .refine(whenBuilt(key), notBuilt(key))
    .default(key.default)
    .meta(docOf(key, key.unit))
}

/** A folder of bpffs. Checked here below the usual mount point alone; other mount points are checked at the start. */
export function pinPath(key: KeyDoc<string> & { readonly unit: string }) {
  const path = words('path').superRefine((each, context) => {
    if (!each.startsWith(`${USUAL_BPFFS}/`)) return
    const name = dottedName(each.slice(USUAL_BPFFS.length))
    if (name === undefined) return
    const message = `found ${JSON.stringify(name)}, expected names without a dot: bpffs takes no others`
    context.addIssue({ code: 'custom', message, params: { whole: true } })
  })
  return path.default(key.default).meta(docOf(key, key.unit))
}

/** A text that isn't empty and has no NUL, which no path can hold. */
export function words(what: string) {
  const error = `a ${what}`
  return z.string({ error }).refine((each) => each !== '' && !each.includes('\0'), { error })
}

/** An address without port, kept as text. */
export function address(key: KeyDoc<string>) {
  return addressItem().default(key.default).meta(docOf(key, 'an address, IPv4 or IPv6'))
}

export function addressItem() {
  const error = 'an address, IPv4 or IPv6'
  return z.string({ error }).refine((each) => parseAddress(each) !== undefined, { error })
}

/** `ADDRESS/LENGTH` or an address; the fault has the reason. */
export function prefixItem() {
  return z.string({ error: 'a prefix, such as 10.0.0.0/8' }).superRefine((each, context) => {
    const result = parsePrefix(each)
    if (result.kind === 'bad') {
      context.addIssue({ code: 'custom', message: result.reason, params: { whole: true } })
    }
  })
}

export function list<Item extends z.ZodType>(
  item: Item,
  key: KeyDoc<z.input<Item>[]> & { readonly unit: string; readonly min?: number },
) {
  return z
    .array(item)
    .min(key.min ?? 0, { error: `a list of at least ${key.min ?? 0}` })
    .refine(whenBuilt<unknown>(key), notBuilt(key))
    .prefault(key.default)
    .meta(docOf(key, key.unit))
}

/** A mapping of known keys; left out, each of them has its default. */
export function group<Shape extends z.core.$ZodLooseShape>(doc: string, shape: Shape) {
  return z.strictObject(shape).meta({ description: `${doc}.` })
}
