// Examples of Cilium's documentation, judged by the kernel: by the eBPF programs and by nftables.

import { ebpfMaker } from '../../contract/ebpf-bench.ts'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import { exampleSuite } from '../../support/labs/example-suite.ts'

exampleSuite(ebpfMaker)
exampleSuite({
  ...nftablesMaker,
  make: (sizes) => makeNftablesBench(sizes, { isConfirmed: true }),
})
