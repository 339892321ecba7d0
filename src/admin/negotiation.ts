// Reads the headers Accept and Content-Type of a request (RFC 9110, sections 12.5.1 and 8.3). A request without these headers accepts every
// answer, and its body is JSON.

export const JSON_TYPE = 'application/json'
export const LINES_TYPE = 'application/x-ndjson'

/** `curl -d` sends this type if its user names no other. The body is read as JSON. */
const CURL_TYPE = 'application/x-www-form-urlencoded'

/** Returns true if a client with this header Accept takes an answer of `type`, such as `application/json`. */
export function accepts(header: string | undefined, type: string): boolean {
  if (header === undefined || header.trim() === '') return true
  const forms = [type, `${type.split('/')[0] ?? ''}/*`, '*/*']
  const weights = new Map<string, number>()
  for (const range of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim())
    const weight = parameters.find((each) => each.startsWith('q='))
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  // The most specific range that matches decides.
  const decisive = forms.find((form) => weights.has(form))
  return decisive !== undefined && (weights.get(decisive) ?? 0) > 0
}

/** Returns true if a body with this header Content-Type is read as JSON. */
export function isJson(header: string | undefined): boolean {
  const type = (header ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return type === '' || type === JSON_TYPE || type === CURL_TYPE || type.endsWith('+json')
}
