// The possible traces of a package on a machine and at a site, as lines, so that before and after can be compared: rules, routes, settings
// and filters of the node, pins in a bpffs, network namespaces and mounts.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { outputIn, settings, snapshot } from '../support/labs/intercept-lab.ts'
import type { PackageSite } from './site.ts'

/** Namespaces of labs, and mounts of this trial and of tests. */
const TESTS = /\/run\/netns\/ng-|\/tmp\//

/** `bpffs` is the folder for pins. */
export function traces(site: PackageSite, bpffs: string): readonly string[] {
  return [
    ...snapshot(site.node),
    ...settings(site.node),
    // A qdisc clsact without filters stays at an interface, because another program can use it.
    ...['ingress', 'egress'].flatMap((side) =>
      outputIn(site.node, 'tc', 'filter', 'show', 'dev', site.pod.interface, side).split('\n'),
    ),
    ...snapshot(site.pod.host),
    ...filesBelow(bpffs),
    ...filesBelow('/run/netns').filter((name) => !TESTS.test(name)),
    ...readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .filter((line) => !TESTS.test(line)),
  ]
}

function filesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return names.map((name) => `${folder}/${name}`)
}

/** Added and removed lines. */
export function changesOf(before: readonly string[], after: readonly string[]): readonly string[] {
  const came = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`)
  const went = before.filter((line) => !after.includes(line)).map((line) => `- ${line}`)
  return [...came, ...went]
}
