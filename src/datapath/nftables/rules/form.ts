// The rules have a form, which depends on the kernel and on where the workload runs. `formsFor` lists the forms that a start tries, from the
// wanted form to the form that every kernel takes.

import { SIDES, type Side } from './layout.ts'

export interface RuleForm {
  /** True if this kernel has nflog. Then drops and audits are reported. */
  readonly reports: boolean
  /**
   * True if the sender of a refused packet gets an answer: TCP a reset, every other protocol an ICMP error. Policy is then enforced where the
   * processes of this network namespace send (LOCAL_OUT), because the kernel rejects only there. A second chain behind it drops every packet
   * of an endpoint that was not judged there, such as a forwarded packet. The side `in` has no rules, because no endpoint has its hook there,
   * so the table is made in half the time.
   */
  readonly rejects: boolean
}

/** The form of a datapath that shares the network namespace with other programs. */
export const DROPS: RuleForm = { reports: true, rejects: false }
/** Forms that together have every chain. */
export const ALL_FORMS: readonly RuleForm[] = [DROPS, { reports: true, rejects: true }]

/** Returns the sides that have rules. */
export function sidesOf({ rejects }: RuleForm): readonly Side[] {
  return rejects ? ['out'] : SIDES
}

/** Returns the forms in the order in which a start tries them. A kernel without nflog or without reject refuses the first ones. */
export function formsFor(rejects: boolean): readonly RuleForm[] {
  const wanted = rejects ? [true, false] : [false]
  return [true, false].flatMap((reports) => wanted.map((each) => ({ reports, rejects: each })))
}
