// What is doubtful about single names and patterns. In other engines `*.` can mean several labels; here it means one.

import { parseAddress } from '../core/ip.ts'
import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

export interface NameLintOptions {
  /** Tells every pattern that some engine reads otherwise, the everyday ones with them. */
  readonly portable: boolean
}

export function lintNames(list: NameList, options: NameLintOptions): readonly Finding[] {
  return list.names.flatMap((name) => [
    ...neverMatches(name),
    ...enginesDiffer(name, options),
    ...(list.kind === 'toFQDNs' ? [...everyName(name), ...clusterService(name)] : []),
  ])
}

function neverMatches({ text, pattern, position }: WrittenName): readonly Finding[] {
  const code = 'never-matches'
  if (parseAddress(pattern.text) !== undefined) {
    const message = `${text} is an address, and nobody asks for it as a name`
    return [{ position, code, message, remedy: `write it under toCIDR, with its length` }]
  }
  // A star may stand for nothing, the leading ** for one label of one octet at least.
  const lengths = pattern.labels.map((label) => label.replaceAll('*', '').length)
  if (lengths.some((length) => length > LABEL_OCTETS_MAX)) {
    const message = `${text} has a label of more than ${LABEL_OCTETS_MAX} octets, which no name has`
    return [{ position, code, message, remedy: 'write the label as it is, 1 to 63 octets' }]
  }
  const least = lengths.reduce((sum, length) => sum + Math.max(1, length) + 1, 1)
  if (least + (pattern.kind === 'below' ? 2 : 0) > NAME_OCTETS_MAX) {
    const message = `${text} is longer than any name: ${NAME_OCTETS_MAX} octets as they are sent`
    return [{ position, code, message, remedy: 'write the name as it is' }]
  }
  return []
}

function enginesDiffer(
  { text, pattern, position }: WrittenName,
  { portable }: NameLintOptions,
): readonly Finding[] {
  const tell = (message: string, remedy: string): readonly Finding[] => {
    return [{ position, code: 'engines-differ', message, remedy }]
  }
  const [first = '', ...rest] = text.toLowerCase().replace(/\.$/, '').split('.')
  const base = rest.join('.')
  if (
    rest.some((label) => label.includes('**')) ||
    (/[^*]\*\*|\*\*[^*]/.test(first) && base !== '')
  ) {
    const message = `${text}: ** means one * here and stays inside its label; other engines let it span labels`
    return tell(message, 'write one *; ** spans labels only as the whole first label')
  }
  if (/^\*+[^*]/.test(first) && base !== '') {
    const bare = `${first.replace(/^\*+/, '')}.${base}`
    const message = `${text} matches ${bare} and every name that ends so in one label, as evil${bare}; Antrea takes any depth besides`
    return tell(message, `write ${bare} and *.${bare}, or what is meant of them`)
  }
  if (pattern.kind === 'globs' && first === '*' && rest[0] === '*') {
    const message = `${text} matches exactly ${1 + rest.filter((each) => each === '*').length} labels in front; elsewhere one * is any depth`
    return tell(
      message,
      `write **.${rest.filter((each) => each !== '*').join('.')} when any depth is meant`,
    )
  }
  if (!portable || !text.includes('*')) return []
  if (pattern.kind === 'every') {
    return tell(
      `${text} matches every name at any depth; where a star is one label it does not`,
      'name what is used',
    )
  }
  if (first === '*') {
    const message = `${text} matches exactly one label in front; Calico, Antrea and the NetworkPolicy API take one or more`
    return tell(message, `write **.${base} where any depth is meant`)
  }
  return first === '**'
    ? tell(
        `${text} matches any depth; a Cilium that does not know it yet reads *.${base}`,
        'keep it where namegate alone reads it',
      )
    : []
}

/** Of `toFQDNs` alone: to ask for every name is what most policies allow. */
function everyName({ text, pattern, position }: WrittenName): readonly Finding[] {
  if (pattern.kind !== 'every') return []
  const message = `${text} under toFQDNs opens whatever any name that is asked leads to`
  return [{ position, code: 'allows-all', message, remedy: 'write the domains that are meant' }]
}

const SERVICE_LABELS: readonly string[] = ['svc']

function clusterService({ text, pattern, position }: WrittenName): readonly Finding[] {
  const { labels } = pattern
  const [last, before] = [labels.at(-1), labels.at(-2)]
  const isCluster = last === 'local' && before === 'cluster'
  const isService = last !== undefined && labels.length > 1 && SERVICE_LABELS.includes(last)
  if (!isCluster && !isService) return []
  return [
    {
      position,
      code: 'cluster-service',
      message: `${text} is a Service of the cluster: packets carry a pod's address when policy sees them, not the answer's`,
      remedy: "write a toEndpoints rule with the labels of the Service's pods",
    },
  ]
}
