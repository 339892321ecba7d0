// The runbook of docs/break-glass.md over eBPF (test/support/labs/break-glass.ts).

import { breakGlassSuite } from '../../support/labs/break-glass.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'

breakGlassSuite('ebpf', undefined, canUseNamegate() ?? false)
