// The runbook of docs/break-glass.md over nftables (test/support/labs/break-glass.ts).

import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { breakGlassSuite } from '../../support/labs/break-glass.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? nftablesMaker.unavailable ?? false
breakGlassSuite('nftables', '{ kind: nftables }', skip)
