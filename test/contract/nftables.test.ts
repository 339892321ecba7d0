import { datapathContract } from './datapath.ts'
import { nftablesMaker } from './nftables-bench.ts'

datapathContract(nftablesMaker)
