// The parts from which shapes.ts and its neighbours make the schemas of the admin API.

import { z } from 'zod'

export const text = z.string()
export const whole = z.int()
export const decimal = z.number()
export const flag = z.boolean()
export const texts = z.array(text).readonly()
export const numbers = z.array(whole).readonly()
export const time = text.meta({ format: 'date-time' })
export const mapping = z.record(z.string(), text).readonly()
/** A text that can be absent. */
export const optional = text.exactOptional()

/** A schema of an object with these fields. */
export function shape<Fields extends z.ZodRawShape>(fields: Fields) {
  return z.object(fields).readonly()
}

export function list<Fields extends z.ZodRawShape>(fields: Fields) {
  return z.array(shape(fields)).readonly()
}
