// Clients ask the node itself; the nftables datapath.

import { changeSuite } from '../support/change-suite.ts'

changeSuite({ interception: 'explicit', datapath: 'nftables' })
