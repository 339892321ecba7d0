// The runbook of docs/break-glass.md over eBPF (test/support/break-glass.ts).

import { breakGlassSuite } from '../support/break-glass.ts'
import { canUseNamegate } from '../support/lab-namegate.ts'

breakGlassSuite('ebpf', undefined, canUseNamegate() ?? false)
