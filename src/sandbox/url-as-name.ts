// The option to write in place of a URL after --allow.

/** Ports that URLs leave out, as options take them. */
const PORTS: ReadonlyMap<string, string> = new Map([
  ['http:', ':80/tcp'],
  ['https:', ':443/tcp'],
])

/** The end of a fault when the text is a URL, else undefined. */
export function whyUrl(text: string): string | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*:)\/\//i.exec(text) ?? []
  if (scheme === undefined) return undefined
  return `: found a URL, expected a name${nameInUrl(text, scheme)}`
}

function nameInUrl(text: string, scheme: string): string {
  const url = URL.parse(text)
  if (url === null || url.hostname === '') return ''
  const port = url.port === '' ? (PORTS.get(scheme.toLowerCase()) ?? '') : `:${url.port}/tcp`
  return `: write --allow ${url.hostname}${port}`
}
