// Queries of clients are intercepted on a node; the eBPF datapath.

import { changeSuite } from '../../support/labs/change-suite.ts'

changeSuite({ interception: 'tproxy', datapath: 'ebpf' })
