// Clients ask the node itself; the eBPF datapath.

import { changeSuite } from '../../support/labs/change-suite.ts'

changeSuite({ interception: 'explicit', datapath: 'ebpf' })
