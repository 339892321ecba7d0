// The runbook of docs/break-glass.md over nftables (test/support/break-glass.ts).

import { nftablesMaker } from '../contract/nftables-bench.ts'
import { breakGlassSuite } from '../support/break-glass.ts'
import { canUseNamegate } from '../support/lab-namegate.ts'

const skip = canUseNamegate() ?? nftablesMaker.unavailable ?? false
breakGlassSuite('nftables', '{ kind: nftables }', skip)
