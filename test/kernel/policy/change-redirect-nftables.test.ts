// As a sidecar has it: queries are caught where the clients are; the nftables datapath.

import { changeSuite } from '../../support/labs/change-suite.ts'

changeSuite({ interception: 'redirect', datapath: 'nftables' })
