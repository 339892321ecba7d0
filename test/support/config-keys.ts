// The keys of a JSON Schema as a flat list, for tests of the configuration.

export interface SchemaKey {
  /** `dns.hold.limit`, `listeners[].port`. */
  readonly path: string
  readonly description: string
  readonly hasDefault: boolean
  readonly schema: Readonly<Record<string, unknown>>
}

export function keysOf(schema: unknown, prefix = ''): readonly SchemaKey[] {
  if (!isRecord(schema)) return []
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const own = Object.entries(properties).flatMap(([key, value]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (!isRecord(value)) return []
    const { description } = value
    const found = {
      path,
      description: typeof description === 'string' ? description : '',
      hasDefault: Object.hasOwn(value, 'default'),
      schema: value,
    }
    return [found, ...keysOf(value, path)]
  })
  return [...own, ...keysOf(schema['items'], `${prefix}[]`)]
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
