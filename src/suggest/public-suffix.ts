// Domains under which anybody may have a name, as far as it can be told without the list of all registries: a top-level
// domain, and under one of a country the words that registries sell names below, as co.uk. Hosters that give names away
// (github.io) are not known here.

/** Second-level words of registries, under two letters. */
const REGISTRY_WORDS: ReadonlySet<string> = new Set(
  (
    'ac ad asn biz co com csiro ed edu firm gen go gob gouv gov govt gv id in ind info k12 lg ltd me mil ' +
    'mod ne net nhs nic nom nsw or org plc police qld res sa sch school tas vic wa web'
  ).split(' '),
)

/** Whether names below `domain` (lower case, no final dot) belong to whoever registers them. */
export function isPublicSuffix(domain: string): boolean {
  const [word = '', country = '', ...rest] = domain.split('.')
  if (country === '') return true
  return rest.length === 0 && country.length === 2 && REGISTRY_WORDS.has(word)
}
