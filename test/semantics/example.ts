// One example of a policy with its meaning, and short ways to write policies for them.

export interface Example {
  readonly title: string
  /** YAML documents. */
  readonly policies: string
  readonly from: string
  /** Names that `from` asked before, with their addresses. */
  readonly learned?: Readonly<Record<string, readonly string[]>>
  /** `PEER PORT/PROTOCOL`; at least one of each, or of the questions below. */
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
  readonly mayAsk?: readonly string[]
  readonly mayNotAsk?: readonly string[]
}

/** A CiliumNetworkPolicy with this spec. */
export function cnp(spec: string, namespace = 'default'): string {
  const head = `apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p, namespace: ${namespace} }\n`
  return `${head}spec:\n${indented(spec)}`
}

/** The same for the whole cluster. */
export function ccnp(spec: string): string {
  const head =
    'apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: { name: p }\n'
  return `${head}spec:\n${indented(spec)}`
}

/** A NetworkPolicy for egress. */
export function knp(spec: string): string {
  const head = 'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: p }\n'
  return `${head}spec:\n${indented(`policyTypes: [Egress]\n${spec}`)}`
}

function indented(text: string): string {
  return `${text.trim().replace(/^/gm, '  ')}\n`
}
