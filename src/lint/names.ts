// `lintNames` finds doubtful names and patterns, each judged alone. In some other policy engines `*.` can match several DNS labels. In
// namegate it matches one.

import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'
import { parseAddress } from '../core/ip.ts'
import { looksLikeAddress6, whyNoName } from '../core/name-like.ts'
import type { Finding } from './finding.ts'
import type { NameList, WrittenName } from './written-names.ts'

export interface NameLintOptions {
  /** True to report every pattern that has another meaning in some other policy engine, common patterns included. */
  readonly portable: boolean
}

/** Returns the findings about the names of one list. */
export function lintNames(list: NameList, options: NameLintOptions): readonly Finding[] {
  return list.names.flatMap((name) => [
    ...neverMatches(name),
    ...enginesDiffer(name, options),
    ...(list.kind === 'toFQDNs' ? [...everyName(name), ...clusterService(name)] : []),
  ])
}

function neverMatches({ text, pattern, position }: WrittenName): readonly Finding[] {
  const code = 'never-matches'
  const why = whyNoName(pattern.text)
  if (why !== undefined) {
    const message = `${text} ${why}; programs do not ask DNS for it`
    return [{ position, code, message, remedy: remedyFor(pattern.text) }]
  }
  // The shortest match: a star can stand for no octet, and a leading ** stands for at least one DNS label of one octet.
  const lengths = pattern.labels.map((label) => label.replaceAll('*', '').length)
  if (lengths.some((length) => length > LABEL_OCTETS_MAX)) {
    const message = `${text} has a DNS label of more than ${LABEL_OCTETS_MAX} octets, so it matches no name`
    return [{ position, code, message, remedy: 'write a DNS label of 1 to 63 octets' }]
  }
  const least = lengths.reduce((sum, length) => sum + Math.max(1, length) + 1, 1)
  if (least + (pattern.kind === 'below' ? 2 : 0) > NAME_OCTETS_MAX) {
    const message = `${text} is longer than a name can be: ${NAME_OCTETS_MAX} octets in a message`
    return [{ position, code, message, remedy: 'write the name that is meant' }]
  }
  return []
}

/** `text` is no name (`whyNoName`). */
function remedyFor(text: string): string {
  if (parseAddress(text) !== undefined) {
    return 'write the address under toCIDR, with its prefix length'
  }
  const isName = /[a-z_]/.test(text) && !looksLikeAddress6(text)
  return isName ? 'write the name that is meant' : 'correct it, under toCIDR'
}

function enginesDiffer(
  { text, pattern, position }: WrittenName,
  { portable }: NameLintOptions,
): readonly Finding[] {
  const finding = (message: string, remedy: string): readonly Finding[] => {
    return [{ position, code: 'engines-differ', message, remedy }]
  }
  const [first = '', ...rest] = text.toLowerCase().replace(/\.$/, '').split('.')
  const base = rest.join('.')
  if (
    rest.some((label) => label.includes('**')) ||
    (/[^*]\*\*|\*\*[^*]/.test(first) && base !== '')
  ) {
    const message = `${text}: here ** means the same as * and matches inside one DNS label; in other engines it matches several`
    return finding(
      message,
      'write *; ** matches several DNS labels only if it is the whole first one',
    )
  }
  if (/^\*+[^*]/.test(first) && base !== '') {
    const bare = `${first.replace(/^\*+/, '')}.${base}`
    const message = `${text} matches ${bare} and names such as evil${bare}; in Antrea it also matches names with more DNS labels`
    return finding(message, `write ${bare} and *.${bare}, or only one of them`)
  }
  if (pattern.kind === 'globs' && first === '*' && rest[0] === '*') {
    const message = `${text} matches exactly ${1 + rest.filter((each) => each === '*').length} DNS labels in front; in other engines one * matches any number`
    return finding(
      message,
      `write **.${rest.filter((each) => each !== '*').join('.')} if any number of DNS labels is meant`,
    )
  }
  if (!portable || !text.includes('*')) return []
  if (pattern.kind === 'every') {
    return finding(
      `${text} matches every name; in engines in which * is one DNS label it does not`,
      'write the names that are used',
    )
  }
  if (first === '*') {
    const message = `${text} matches exactly one DNS label in front; in Calico, Antrea and the NetworkPolicy API it matches one or more`
    return finding(message, `write **.${base} if any number of DNS labels is meant`)
  }
  return first === '**'
    ? finding(
        `${text} matches one or more DNS labels in front; versions of Cilium that do not know ** read it as *.${base}`,
        'keep it if only namegate reads this policy',
      )
    : []
}

/** Finds patterns for every name. Called for `toFQDNs` only, because in `rules.dns` such a pattern is usual. */
function everyName({ text, pattern, position }: WrittenName): readonly Finding[] {
  if (pattern.kind !== 'every') return []
  const message = `${text} under toFQDNs opens the addresses of every name that the endpoint asks for`
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
      message: `${text} is a Service of the cluster: policy sees packets with the address of a pod, not with the address in the answer`,
      remedy: "write a toEndpoints rule with the labels of the Service's pods",
    },
  ]
}
