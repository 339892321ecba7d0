// What `namegate doctor` finds about limits, folders, the daemon and the clock.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  checkPinPath,
  checkSocketFolder,
  checkStateFolder,
} from '../../../src/cli/doctor/folders.ts'
import {
  checkConnectionTable,
  checkLockedMemory,
  checkOpenFiles,
  checkReceiveBuffer,
} from '../../../src/cli/doctor/limits.ts'
import { Machine } from '../../../src/cli/doctor/machine.ts'
import { checkClock, checkDaemon, checkProgram } from '../../../src/cli/doctor/program.ts'
import { parseConfig } from '../../../src/config/load.ts'
import {
  caps,
  fileLimit,
  kernel,
  tracked,
  EBPF,
  NFTABLES,
  SERVING,
  testRows,
  noTool,
  type DoctorRow,
} from '../../support/nodes/doctor.ts'

const LIMIT_ROWS: readonly DoctorRow[] = [
  {
    why: 'enough files',
    check: checkOpenFiles,
    files: fileLimit('65536'),
    result: 'ok',
    found: /65536/,
  },
  {
    why: 'no bound',
    check: checkOpenFiles,
    files: fileLimit('unlimited'),
    result: 'ok',
    found: /unlimited/,
  },
  {
    why: 'too few files',
    check: checkOpenFiles,
    files: fileLimit('4096'),
    result: 'warning',
    found: /the limit is 4096/,
    remedy: /LimitNOFILE=\d+/,
  },
  {
    why: 'the limit of the daemon counts, not that of the command',
    check: checkOpenFiles,
    files: { ...fileLimit('1024'), ...fileLimit('1048576', '7') },
    status: SERVING,
    result: 'ok',
    found: /1048576/,
  },
  { why: 'no /proc', check: checkOpenFiles, result: 'unchecked', found: /cannot read/ },
  {
    why: 'an old kernel counts maps as locked memory',
    check: checkLockedMemory,
    files: { ...kernel('5.10.0'), ...fileLimit('8388608') },
    config: EBPF,
    result: 'problem',
    found: /8388608 octets/,
    remedy: /LimitMEMLOCK=infinity/,
  },
  {
    why: 'a newer kernel does not',
    check: checkLockedMemory,
    files: { ...kernel('5.11.0'), ...fileLimit('65536') },
    config: EBPF,
    result: 'ok',
    found: /by cgroup/,
  },
  {
    why: 'room',
    check: checkConnectionTable,
    files: tracked(79, 100),
    result: 'ok',
    found: /^79 of 100/,
  },
  {
    why: 'nearly full',
    check: checkConnectionTable,
    files: tracked(80, 100),
    result: 'warning',
    found: /^80 of 100/,
    remedy: /^sysctl -w net\.netfilter\.nf_conntrack_max=200$/,
  },
  {
    why: 'full: new connections are dropped',
    check: checkConnectionTable,
    files: tracked(96, 100),
    result: 'problem',
    found: /^96 of 100/,
    remedy: /=200$/,
  },
  {
    why: 'the table is not loaded, and nftables needs it',
    check: checkConnectionTable,
    config: NFTABLES,
    result: 'unchecked',
    found: /cannot be seen/,
  },
  {
    why: 'a small limit, without the capability that ignores it',
    check: checkReceiveBuffer,
    files: { ...caps('0'), '/proc/sys/net/core/rmem_max': '212992\n' },
    result: 'warning',
    found: /rmem_max is 212992/,
    remedy: /^sysctl -w net\.core\.rmem_max=8388608$/,
  },
]

const OTHER_ROWS: readonly DoctorRow[] = [
  {
    why: 'a pin path without bpffs',
    check: checkPinPath,
    config: `${EBPF.replace(' }', '')}, ebpf: { pin-path: /opt/pins } }`,
    result: 'problem',
    found: /no bpffs is mounted at \/opt/,
    remedy: /^give a datapath\.ebpf\.pin-path below \/sys\/fs\/bpf$/,
  },
  {
    why: 'the usual pin path without bpffs',
    check: checkPinPath,
    config: EBPF,
    result: 'warning',
    found: /no bpffs is mounted at \/sys\/fs\/bpf/,
    remedy: /^mount -t bpf bpf \/sys\/fs\/bpf$/,
  },
  { why: 'no pins without eBPF', check: checkPinPath, result: 'ok', found: /not needed/ },
  {
    why: 'a folder that can be made',
    check: checkSocketFolder,
    config: 'admin: { socket: /run/namegate/admin.sock }',
    result: 'ok',
    found: /admin\.sock/,
  },
  {
    why: 'less room than flows can take',
    check: checkStateFolder,
    config: 'flows: { max-size: 8000000000MiB }\nstate: { directory: /state }',
    result: 'warning',
    found: /state has \d+ MiB free/,
    remedy: /flows\.max-size/,
  },
  {
    why: 'a daemon that serves',
    check: checkDaemon,
    status: SERVING,
    result: 'ok',
    found: /pid 7, ready/,
  },
  {
    why: 'no daemon',
    check: checkDaemon,
    result: 'warning',
    found: /none answers at/,
    remedy: /namegate run/,
  },
  {
    why: 'a daemon that is not ready',
    check: checkDaemon,
    status: { ...SERVING, ready: false, notReady: ['no upstream has answered'] },
    result: 'problem',
    found: /is not ready: no upstream has answered/,
    remedy: /namegate status/,
  },
  {
    why: 'a daemon of another version',
    check: checkDaemon,
    status: { ...SERVING, version: '0.0.1' },
    result: 'warning',
    found: /version 0\.0\.1.*this program is version/,
    remedy: /--take-over/,
  },
  {
    why: 'a daemon that lets everything pass',
    check: checkDaemon,
    status: { ...SERVING, mode: 'bypass' },
    result: 'warning',
    found: /mode is bypass/,
    remedy: /datapath mode enforce/,
  },
  { why: 'the program', check: checkProgram, result: 'ok', found: /^namegate \d.*Node\.js v/ },
]

testRows([...LIMIT_ROWS, ...OTHER_ROWS])

test('checkClock says if the kernel has a synchronised clock', async () => {
  const machine = new Machine(noTool)
  const [finding] = await checkClock({ machine, config: parseConfig('', 'x'), status: undefined })
  assert.ok(['ok', 'warning', 'unchecked'].includes(finding?.result ?? ''), finding?.found)
})
