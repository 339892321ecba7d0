// The nftables datapath for the contract suite: real rules of this kernel. Frames are put in front of them as if they arrived
// (test/support/labs/frame-place.ts).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { systemClock, type Clock } from '../../src/core/clock.ts'
import type { EndpointId } from '../../src/core/ids.ts'
import type { Changes, CommitResult } from '../../src/datapath/entries.ts'
import { NftablesDatapath } from '../../src/datapath/nftables/adapter.ts'
import { isBuilt, loadNetlink } from '../../src/native/native.ts'
import type { NetlinkAddon } from '../../src/native/netfilter/nftables.ts'
import { FRAME_INTERFACES, FramePlace } from '../support/labs/frame-place.ts'
import type { Bench, BenchMaker, Sizes } from './bench.ts'

export interface NftablesBench extends Bench {
  readonly datapath: NftablesDatapath
  /** The same for any sender of a frame on interface `n`. */
  judgeAt(n: number, frame: Uint8Array): 'pass' | 'drop'
}

/** Shared by all benches of one process. */
let place: FramePlace | undefined

/** `isConfirmed`: a commit returns when the kernel has confirmed it, for tests without an event loop. */
export function makeNftablesBench(
  sizes: Sizes = {},
  options: {
    readonly isConfirmed?: boolean
    readonly clock?: Clock
    readonly netlink?: NetlinkAddon
  } = {},
): NftablesBench {
  const { isConfirmed = false, clock = systemClock, netlink = loadNetlink() } = options
  const Kind = isConfirmed ? ConfirmedDatapath : NftablesDatapath
  const { posix } = (place ??= new FramePlace())
  const here = place
  const make = (): NftablesDatapath => {
    const datapath = new Kind({
      netlink,
      posix,
      clock,
      prefixesMax: sizes.prefixes ?? 65_536,
      policyEntriesMax: sizes.policies ?? 65_536,
      adoptedMax: sizes.adopted ?? 1024,
    })
    datapath.start()
    return datapath
  }
  let datapath = make()
  return {
    get datapath() {
      return datapath
    },
    judge: (endpoint, direction, frame) =>
      here.judge(interfaceOf(datapath, endpoint), direction, frame),
    judgeAt: (n, frame) => here.judge(n, 'from', frame),
    interfaceHook: (n) => ({ kind: 'interface', name: `lxc${n}`, side: 'ingress' }),
    ifindex: (n) => posix.ifIndex(`lxc${n}`),
    cgroupHook: () => ({ kind: 'cgroup', path: 'none' }),
    restart: () => {
      datapath.stop({ leaveEnforcing: true })
      datapath = make()
    },
    close: () => {
      datapath.stop({ leaveEnforcing: false })
      here.forgetFlows()
    },
  }
}

class ConfirmedDatapath extends NftablesDatapath {
  override commit(changes: Changes): CommitResult {
    let result = super.commit(changes)
    this.onCommitted((each) => (result = each))
    this.finishCommit()
    assert.ok(result)
    return result
  }
}

function interfaceOf(datapath: NftablesDatapath, endpoint: EndpointId): number {
  const index = datapath.interfaceOf(endpoint)
  for (let n = 1; n <= FRAME_INTERFACES; n++) {
    if (place?.posix.ifIndex(`lxc${n}`) === index) return n
  }
  return 0
}

function unavailable(): string | undefined {
  const status = readFileSync('/proc/self/status', 'utf8')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  const needed = (1n << 12n) | (1n << 13n) | (1n << 21n)
  if ((effective & needed) !== needed)
    return 'needs root (CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN)'
  if (!isBuilt('nftables') || !isBuilt('conntrack')) return 'the native part is not built'
  return undefined
}

export const nftablesMaker: BenchMaker = {
  name: 'nftables',
  unavailable: unavailable(),
  lacks: {
    cgroups: 'the nftables datapath fences interfaces only',
    bridges:
      'a packet that comes in by a port of a bridge reaches the rules as a packet of the bridge',
    tags: 'a tagged frame belongs to a VLAN interface, and this one would be fenced',
    fragments: 'the kernel assembles fragments before it judges them, so a single one never passes',
    malformed: 'the kernel refuses packets with wrong lengths before any rule can count them',
    extensions: 'the kernel reads all extension headers, so none hides a port',
    forged:
      'the kernel recognizes a forged RST by its sequence number, and packets of the test support have none',
    sctp: 'the kernel follows SCTP by its chunks, and packets of the test support have none',
    connections: 'the kernel bounds its connection table as a whole (nf_conntrack_max)',
    learned: 'the kernel has no counter for an element that a full set refused',
  },
  make: (sizes) => makeNftablesBench(sizes),
}
