import { datapathContract } from './datapath.ts'
import { ebpfMaker } from './ebpf-bench.ts'

datapathContract(ebpfMaker)
