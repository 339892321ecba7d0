// Queries of clients are intercepted in their own network namespace, as by a sidecar; the nftables datapath.

import { changeSuite } from '../../support/labs/change-suite.ts'

changeSuite({ interception: 'redirect', datapath: 'nftables' })
