// Interfaces in front of the real rules of a network namespace of this process. inject.c puts a frame on an interface as if it arrived,
// and a table of the test after namegate's counts the frames that pass. Made once per process, and removed at its end.

import assert from 'node:assert/strict'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Message } from '../../../src/datapath/nftables/netlink/message.ts'
import { Socket } from '../../../src/datapath/nftables/netlink/socket.ts'
import { openConntrack } from '../../../src/native/netfilter/conntrack.ts'
import { loadNetlink, loadPosix, type Posix } from '../../../src/native/native.ts'
import type { Direction } from '../../contract/bench.ts'
import { compiled } from '../peers/compiled.ts'
import { ethernet as frameOf } from '../packets.ts'

export const FRAME_INTERFACES = 3
/** Destination and source of frames of the test support. */
const HERE = '02:00:00:00:00:01'
const THERE = '02:00:00:00:00:02'
/** The kernel looks only at frames of Ethernet and IPv4. */
const ARP = frameOf(0x0806, Uint8Array.of(0, 1, 8, 0, 6, 4, 0, 1, ...new Uint8Array(20)))
const MARKERS_MAX_MS = 10_000
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ['net/ipv4/ip_forward', '1'],
  ['net/ipv6/conf/all/forwarding', '1'],
  ['net/ipv4/conf/all/rp_filter', '0'],
  ['net/ipv4/conf/default/rp_filter', '0'],
  ['net/ipv6/conf/default/accept_dad', '0'],
  ['net/ipv6/conf/default/seg6_enabled', '0'],
  // Frames of the test support have sequence numbers and checksums of zero.
  ['net/netfilter/nf_conntrack_tcp_be_liberal', '1'],
  ['net/netfilter/nf_conntrack_checksum', '0'],
]

/**
 * Counts the packets that reach the namespace, and those that namegate's rules (priority -160) pass. `loads` brings the module of conntrack,
 * whose settings are not there before.
 */
const RULES = `
table inet bench {
  counter marker { }
  counter passed { }
  chain before { type filter hook prerouting priority -500; ip saddr 192.0.0.8 counter name marker drop; }
  chain behind { type filter hook prerouting priority -159; iifname "lxc*" counter name passed; }
  chain loads { ct state new accept; }
}
table arp bench {
  counter passed { }
  chain behind { type filter hook input priority 0; counter name passed; }
}
`

export class FramePlace {
  readonly posix: Posix = loadPosix()
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-nft-'))
  readonly #child: ChildProcess
  readonly #requests: number
  readonly #answers: number
  readonly #socket: Socket
  readonly #message = new Message()

  constructor() {
    const { posix } = this
    assert.equal(posix.unshareNetwork(), 0)
    for (let n = 1; n <= FRAME_INTERFACES; n++) {
      ip('link', 'add', `lxc${n}`, 'address', HERE, 'type', 'veth', 'peer', `peer${n}`)
    }
    ip('link', 'add', 'uplink', 'type', 'veth', 'peer', 'peer4')
    const names = ['requests', 'answers'].map((name) => join(this.#folder, name))
    execFileSync('mkfifo', names)
    const [requests = '', answers = ''] = names
    this.#requests = openSync(requests, 'r+')
    this.#answers = openSync(answers, 'r+')
    this.#child = spawn(compiled('inject'), names, { stdio: 'inherit' })
    this.#child.unref()
    process.on('exit', () => {
      this.#child.kill('SIGKILL')
      rmSync(this.#folder, { recursive: true })
    })
    assert.equal(this.#answer(), 'r')
    this.#connect()
    execFileSync('nft', ['-f', '-'], { input: RULES })
    for (const [name, value] of SETTINGS) {
      if (existsSync(`/proc/sys/${name}`)) writeFileSync(`/proc/sys/${name}`, value)
    }
    this.#socket = new Socket(loadNetlink(), () => undefined)
  }

  /** Interface 0 stands for no interface. It is closed, like a hook without an endpoint. */
  judge(number: number, direction: Direction, frame: Uint8Array): 'pass' | 'drop' {
    if (number === 0) return 'drop'
    if (direction === 'to') {
      this.#send(0, number, frame)
      return 'pass'
    }
    const isArp = frame[12] === 0x08 && frame[13] === 0x06
    const before = this.#counts()
    this.#send(1, number, isArp ? ARP : frame)
    const late = Date.now() + MARKERS_MAX_MS
    for (;;) {
      const { marker, passed } = this.#counts()
      if (marker > before.marker) return passed > before.passed ? 'pass' : 'drop'
      assert.ok(Date.now() < late, 'the marker after the frame was counted')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.05)
    }
  }

  /** Removes all connections, so that the next bench has none of this one. */
  forgetFlows(): void {
    const opened = openConntrack()
    if (opened.kind !== 'open') return
    opened.table.forgetFlows(() => true)
    opened.table.close()
  }

  #send(from: 0 | 1, number: number, frame: Uint8Array): void {
    const request = new Uint8Array(4 + frame.length)
    request.set([from, number, frame.length & 255, frame.length >> 8])
    request.set(frame, 4)
    writeSync(this.#requests, request)
    const answer = this.#answer()
    assert.ok(answer === '+' || from === 0, `the frame could be sent: ${answer}`)
  }

  #answer(): string {
    const octet = new Uint8Array(1)
    readSync(this.#answers, octet)
    return String.fromCharCode(octet[0] ?? 0)
  }

  /** Packets counted by the test's tables. */
  #counts(): { readonly marker: number; readonly passed: number } {
    const counts = { marker: 0, passed: 0 }
    const request = (to: Message, flags: number): void => {
      to.begin(19, flags, 0)
      to.text(1, 'bench')
      to.end()
    }
    this.#socket.list(request, this.#message, (reader, from, end) => {
      let [name, packets] = ['', 0]
      reader.attributes(from, end, (type, at, to) => {
        if (type === 2) name = reader.text(at, to)
        if (type === 4) packets = reader.u64(reader.find(at, to, 2))
      })
      if (name === 'marker') counts.marker += packets
      if (name === 'passed') counts.passed += packets
    })
    return counts
  }

  /** Moves the far ends into the child's namespace, and makes routes to pods and to the world. */
  #connect(): void {
    const pid = String(this.#child.pid)
    ip('link', 'set', 'lo', 'up')
    for (let n = 1; n <= 4; n++) {
      ip('link', 'set', `peer${n}`, 'netns', pid)
      execFileSync('nsenter', ['-t', pid, '-n', 'ip', 'link', 'set', `peer${n}`, 'up'])
      ip('link', 'set', n === 4 ? 'uplink' : `lxc${n}`, 'up')
    }
    for (let n = 1; n <= FRAME_INTERFACES; n++) {
      const metric = ['metric', String(n)]
      ip('route', 'add', '10.0.1.0/24', 'dev', `lxc${n}`, ...metric)
      ip('-6', 'route', 'add', 'fd00::/64', 'dev', `lxc${n}`, ...metric)
      for (const address of ['10.0.1.5', '10.0.1.6', 'fd00::5', 'fd00::6']) {
        ip('neigh', 'add', address, 'lladdr', THERE, 'dev', `lxc${n}`, 'nud', 'permanent')
      }
    }
    for (const [family, way] of [
      ['-4', '10.255.0.2'],
      ['-6', 'fd01::2'],
    ] as const) {
      ip('neigh', 'add', way, 'lladdr', THERE, 'dev', 'uplink', 'nud', 'permanent')
      ip(family, 'route', 'add', 'default', 'via', way, 'dev', 'uplink', 'onlink')
    }
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', [...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}
