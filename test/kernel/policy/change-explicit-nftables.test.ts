// Clients ask the node itself; the nftables datapath.

import { changeSuite } from '../../support/labs/change-suite.ts'

changeSuite({ interception: 'explicit', datapath: 'nftables' })
