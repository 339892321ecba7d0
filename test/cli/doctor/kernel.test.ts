// What `namegate doctor` finds about kernels and capabilities.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  checkCgroups,
  checkFeatures,
  checkKernel,
  checkPrivileges,
} from '../../../src/cli/doctor/kernel.ts'
import { Machine } from '../../../src/cli/doctor/machine.ts'
import {
  built,
  caps,
  kernel,
  EBPF,
  NFTABLES,
  TPROXY,
  OWN_53,
  SERVING,
  testRows,
  noTool,
  type DoctorRow,
} from '../../support/nodes/doctor.ts'

const KERNEL_ROWS: readonly DoctorRow[] = [
  {
    why: 'the oldest kernel that has what eBPF needs',
    check: checkKernel,
    files: kernel('5.8.0-1'),
    config: EBPF,
    result: 'ok',
    found: /^5\.8\.0-1; datapath ebpf needs 5\.8/,
  },
  {
    why: 'older than nftables needs, but not than eBPF needs',
    check: checkKernel,
    files: kernel('5.10.0-34-amd64'),
    config: NFTABLES,
    result: 'problem',
    found: /datapath nftables needs 5\.13 or newer/,
    remedy: /datapath\.kind: ebpf/,
  },
  {
    why: 'older than all',
    check: checkKernel,
    files: kernel('4.19.0'),
    config: EBPF,
    result: 'problem',
    found: /needs 5\.8/,
    remedy: /^install a newer kernel$/,
  },
  {
    why: 'memory needs none',
    check: checkKernel,
    files: kernel('4.4.0'),
    result: 'ok',
    found: /memory/,
  },
  { why: 'no /proc', check: checkKernel, config: EBPF, result: 'unchecked', found: /cannot read/ },
  {
    why: 'built into the kernel',
    check: checkFeatures,
    part: 'tc',
    files: built('NET_SCH_INGRESS=y', 'NET_CLS_BPF=y', 'NET_CLS_ACT=y'),
    config: EBPF,
    result: 'ok',
    found: /^the kernel has sch_ingress cls_bpf CONFIG_NET_CLS_ACT$/,
  },
  {
    why: 'one part is not in the kernel',
    check: checkFeatures,
    part: 'tc',
    files: built('NET_SCH_INGRESS=y', 'NET_CLS_ACT=y', 'NET_CLS_BPF_X=y'),
    config: EBPF,
    result: 'problem',
    found: /^the kernel lacks cls_bpf$/,
    remedy: /CONFIG_NET_CLS_BPF; then: modprobe -a cls_bpf$/,
  },
  {
    why: 'a module that is not installed',
    check: checkFeatures,
    part: 'tproxy',
    files: {
      ...built('NFT_TPROXY=m'),
      '/lib/modules/6.1.0/modules.dep': 'kernel/net/netfilter/nft_ct.ko.xz:\n',
    },
    config: TPROXY,
    result: 'problem',
    found: /lacks nft_tproxy/,
    remedy: /modprobe -a nft_tproxy/,
  },
  {
    why: 'a module that can be loaded',
    check: checkFeatures,
    part: 'tproxy',
    files: {
      ...kernel('6.1.0'),
      '/lib/modules/6.1.0/modules.dep': 'kernel/net/netfilter/nft-tproxy.ko.xz: kernel/x.ko\n',
    },
    config: TPROXY,
    result: 'ok',
    found: /has nft_tproxy/,
  },
  {
    why: 'what is not needed may be missing',
    check: checkFeatures,
    part: 'tproxy',
    files: built('BPF_SYSCALL=y'),
    config: EBPF,
    result: 'ok',
    found: /needs none of it/,
  },
  {
    why: 'a container without modules and without the options of the kernel',
    check: checkFeatures,
    part: 'nftables',
    files: kernel('6.1.0'),
    config: NFTABLES,
    result: 'unchecked',
    found: /no file says if the kernel has nf_tables/,
  },
  {
    why: 'cgroup v2 at its usual place',
    check: checkCgroups,
    files: { '/proc/self/mounts': 'x / y\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n' },
    config: EBPF,
    result: 'ok',
    found: /^mounted at \/sys\/fs\/cgroup$/,
  },
  {
    why: 'only cgroup v1',
    check: checkCgroups,
    files: { '/proc/self/mounts': 'cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n' },
    config: EBPF,
    result: 'warning',
    found: /not mounted/,
    remedy: /^mkdir -p \/sys\/fs\/cgroup && mount -t cgroup2/,
  },
]

const isRoot = process.geteuid?.() === 0

const PRIVILEGE_ROWS: readonly DoctorRow[] = [
  {
    why: 'all capabilities',
    check: checkPrivileges,
    files: caps('000001ffffffffff'),
    config: `${EBPF}\n${TPROXY}`,
    result: 'ok',
    found: /^this user has CAP_BPF CAP_PERFMON CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE$/,
  },
  {
    why: 'CAP_SYS_ADMIN has the two of eBPF',
    check: checkPrivileges,
    files: caps('0000000000201000'),
    config: EBPF,
    result: 'ok',
    found: /^this user has/,
  },
  {
    why: 'none',
    check: checkPrivileges,
    files: caps('0000000000000000'),
    config: NFTABLES,
    result: isRoot ? 'problem' : 'warning',
    found: /^this user lacks CAP_NET_ADMIN/,
    remedy: isRoot ? /CapabilityBoundingSet=CAP_NET_ADMIN/ : /as root/,
  },
  {
    why: 'the daemon runs as another user',
    check: checkPrivileges,
    files: caps('0000000000000000'),
    config: NFTABLES,
    status: SERVING,
    result: 'ok',
    found: /the daemon runs as another user/,
  },
  {
    why: 'ports from 53 on are free for all here',
    check: checkPrivileges,
    files: { ...caps('0'), '/proc/sys/net/ipv4/ip_unprivileged_port_start': '53\n' },
    config: OWN_53,
    result: 'ok',
    found: /needs no capability/,
  },
  {
    why: 'port 53 needs one',
    check: checkPrivileges,
    files: caps('0'),
    config: OWN_53,
    result: isRoot ? 'problem' : 'warning',
    found: /CAP_NET_BIND_SERVICE/,
    remedy: /./,
  },
]

testRows([...KERNEL_ROWS, ...PRIVILEGE_ROWS])

test('Machine.has reads what the running kernel has', () => {
  const machine = new Machine(noTool)
  assert.match(machine.release, /^\d+\.\d+/)
  assert.notEqual(machine.has({ option: 'NF_TABLES_NO_SUCH', module: 'no_such_module' }), true)
})
