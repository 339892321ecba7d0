import { datapathContract } from './datapath.ts'
import { memoryMaker } from './memory-bench.ts'

datapathContract(memoryMaker)
