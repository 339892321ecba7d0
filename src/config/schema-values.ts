// Defines the kinds of values of configuration keys as zod schemas. Each schema has the default, the text for the reference, and what a
// fault says was expected. The message of an issue is that expectation; with `params.whole`, the message is the whole sentence.

import { z } from 'zod'
import { listWords } from '../documents/source-document.ts'
import { parseAddress, parsePrefix, type Prefix } from '../core/ip.ts'
import {
  DURATION_FORM,
  formatDuration,
  DURATION_PATTERN,
  parseDuration,
  parseSize,
  SIZE_FORM,
  SIZE_PATTERN,
} from '../core/quantity.ts'
import { dottedName, USUAL_BPFFS } from '../core/pin-path.ts'

export interface KeyDoc<Value> {
  readonly default: Value
  readonly doc: string
}

/** Formats a value for messages. */
export function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function docOf<Value>(key: KeyDoc<Value>, unit: string): { description: string } {
  return { description: `${key.doc} (${unit}; default ${show(key.default)}).` }
}

export function flag(key: KeyDoc<boolean>) {
  return z.boolean().default(key.default).meta(docOf(key, 'true or false'))
}

/** A whole number in a range. `unit` names what is counted. */
export function integer(
  key: KeyDoc<number> & { readonly min: number; readonly max: number; readonly unit: string },
) {
  const error = `a whole number from ${key.min} to ${key.max}`
  return z
    .int({ error })
    .min(key.min, { error })
    .max(key.max, { error })
    .default(key.default)
    .meta(docOf(key, key.unit))
}

/** One of a few words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(
  words: Words,
  key: KeyDoc<Words[number]>,
) {
  return z
    .enum(words, { error: listWords(words) })
    .prefault(key.default)
    .meta(docOf(key, listWords(words)))
}

/** A text that becomes milliseconds. `min` and `max` are milliseconds. */
export function duration(key: KeyDoc<string> & { readonly min?: number; readonly max?: number }) {
  const [min, max] = [key.min ?? 0, key.max ?? Number.MAX_SAFE_INTEGER]
  const inRange = (text: string): boolean => {
    const ms = parseDuration(text)
    return ms !== undefined && ms >= min && ms <= max
  }
  const least = min === 0 ? '' : `, at least ${formatDuration(min)}`
  const most = key.max === undefined ? '' : `, at most ${formatDuration(max)}`
  return z
    .string({ error: DURATION_FORM })
    .regex(DURATION_PATTERN, { error: DURATION_FORM, abort: true })
    .refine(inRange, { error: `${DURATION_FORM}${least}${most}`, abort: true })
    .transform((text) => parseDuration(text) ?? 0)
    .prefault(key.default)
    .meta(docOf(key, 'duration: a whole number and ms, s, m, h or d'))
}

/** A text that becomes octets. `min` is a text such as `1MiB`. */
export function size(key: KeyDoc<string> & { readonly min: string }) {
  const least = parseSize(key.min) ?? 0
  return z
    .string({ error: SIZE_FORM })
    .regex(SIZE_PATTERN, { error: SIZE_FORM, abort: true })
    .refine((text) => parseSize(text) !== undefined, { error: SIZE_FORM, abort: true })
    .refine((text) => (parseSize(text) ?? 0) >= least, {
      params: { whole: true },
      error: `found less than ${key.min}`,
    })
    .transform((text) => parseSize(text) ?? 0)
    .prefault(key.default)
    .meta(docOf(key, 'size: a whole number and KiB, MiB or GiB'))
}

/** A text that is not empty, such as a path. If `pattern` is given, the text must match the pattern. */
export function text(key: KeyDoc<string> & { readonly unit: string; readonly pattern?: RegExp }) {
  return words(key.unit)
    .regex(key.pattern ?? /./s, { error: `a ${key.unit}` })
    .default(key.default)
    .meta(docOf(key, key.unit))
}

/** A folder of bpffs. Only a path below the usual mount point is checked here; the start checks paths below other mount points. */
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

/** A text that is not empty and has no NUL, because no path can have a NUL. */
export function words(what: string) {
  const error = `a ${what}`
  return z.string({ error }).refine((each) => each !== '' && !each.includes('\0'), { error })
}

const ADDRESS_FORM = 'an address, IPv4 or IPv6'

/** An address without port. The value stays a text. */
export function address(key: KeyDoc<string>) {
  return z
    .string({ error: ADDRESS_FORM })
    .refine((each) => parseAddress(each) !== undefined, { error: ADDRESS_FORM })
    .default(key.default)
    .meta(docOf(key, ADDRESS_FORM))
}

/** An address without port, which becomes a prefix of full length. */
export function addressItem() {
  return z.string({ error: ADDRESS_FORM }).transform((text, context): Prefix => {
    const parsed = parseAddress(text)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: ADDRESS_FORM })
    return z.NEVER
  })
}

/** `ADDRESS/LENGTH` or an address, which becomes a prefix. The fault says why a text is no prefix. */
export function prefixItem() {
  return z.string({ error: 'a prefix, such as 10.0.0.0/8' }).transform((text, context): Prefix => {
    const result = parsePrefix(text)
    if (result.kind === 'ok') return result.prefix
    context.addIssue(faultAt([], result.reason))
    return z.NEVER
  })
}

export function list<Item extends z.ZodType>(
  item: Item,
  key: KeyDoc<z.input<Item>[]> & { readonly unit: string; readonly min?: number },
) {
  return z
    .array(item)
    .min(key.min ?? 0, { error: `a list of at least ${key.min ?? 0}` })
    .prefault(key.default)
    .meta(docOf(key, key.unit))
}

/** An issue about a value inside a section. The message is the whole sentence. */
export function faultAt(path: readonly (string | number)[], message: string) {
  return { code: 'custom' as const, path: [...path], message, params: { whole: true } }
}

/** A mapping of keys that `toFields` turns into fields of Config. */
export function section<Shape extends z.core.$ZodLooseShape, Fields>(
  doc: string,
  shape: Shape,
  toFields: (
    keys: z.output<ReturnType<typeof group<Shape>>>,
    context: z.core.$RefinementCtx,
  ) => Fields,
) {
  return group(doc, shape).transform(toFields)
}

/** A mapping of known keys. A key that is left out has its default. */
export function group<Shape extends z.core.$ZodLooseShape>(doc: string, shape: Shape) {
  return z.strictObject(shape).meta({ description: `${doc}.` })
}
