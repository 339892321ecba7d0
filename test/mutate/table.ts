// All mutations, by the part that they break.

import type { Mutation } from './mutation.ts'
import { DNS } from './table/dns.ts'
import { KERNEL } from './table/kernel.ts'
import { KUBERNETES } from './table/kubernetes.ts'
import { KNOWLEDGE } from './table/knowledge.ts'
import { POLICY } from './table/policy.ts'
import { PROXY } from './table/proxy.ts'

export const MUTATIONS: readonly Mutation[] = [
  ...DNS,
  ...POLICY,
  ...PROXY,
  ...KNOWLEDGE,
  ...KUBERNETES,
  ...KERNEL,
]
