// This file defines `namegate up` and `namegate init`, the commands with which a new user begins. The code of a command is loaded when the
// command is called.

import type { ParsedCommand } from '../command.ts'
import { flag, list, text, UNUSED_CONFIG } from './options.ts'

export const UP: ParsedCommand = {
  name: 'up',
  summary: 'protect a network namespace, an interface or a cgroup of this host until Ctrl-C',
  synopsis: [
    'up --netns NAME | --interface IF | --cgroup PATH [--allow TARGET[:PORT[/PROTO]]]... [OPTIONS]',
  ],
  docs: 'docs/install.md',
  about: `Finds the interfaces, addresses and DNS servers of a workload that exists already, writes a configuration for them, prints it,
and runs the daemon with it. The workload can then reach only what you allow. Every refusal is one line, with the line to add to the
allow-list that the daemon watches: it takes effect within a second. Ctrl-C ends the daemon, removes its rules and its list, and prints the
command line that allows the added lines next time. After a kill, the same command keeps them, and what the daemon learned. Needs root.`,
  options: {
    netns: text(
      'NAME',
      'a network namespace of `ip netns list`, or its path, such as /proc/PID/ns/net',
    ),
    interface: text(
      'IF',
      'an interface of this host with workloads behind it: a veth, a tap, a bridge (what stays on the bridge is not judged)',
    ),
    cgroup: text('PATH', 'a cgroup of this host, such as build.slice; needs eBPF'),
    allow: list(
      'TARGET',
      `name, pattern, address or prefix that the workload can reach; with :PORT, :PORT/tcp or :PORT/udp
only there. '*.' is one DNS label, '**.' one or more. A name also opens private addresses in its
answers. Can be repeated`,
    ),
    'allow-file': list('FILE', 'a file *.allow with one such target a line. Can be repeated'),
    policy: list(
      'FILE',
      'a CiliumNetworkPolicy that selects app=NAME of the workload. Can be repeated',
    ),
    audit: flag('refuse nothing; print what would be refused'),
    upstream: list(
      'ADDRESS',
      'DNS server that the daemon asks, ADDRESS or ADDRESS:PORT. Can be repeated',
    ),
    address: list(
      'ADDRESS',
      'with --interface: address or prefix of the workload. Can be repeated',
    ),
    write: text('DIR', 'save the configuration there, and keep it at the end'),
    force: flag('with --write: replace files that exist'),
    config: UNUSED_CONFIG,
  },
  exitCodes: `0 ended by a signal, or because the reader of its output ended ("up ... | head"), 2 wrong use or invalid policy,
3 the workload was not found, or the daemon could not start or did not continue.`,
  examples: [
    'namegate up --netns box --allow example.com --allow "*.example.org:443/tcp"',
    'namegate up --interface docker0 --audit',
    'namegate up --netns box --allow-file box.allow --write /etc/namegate-box',
  ],
  run: async (read, output) => await (await import('../commands/up.ts')).runUp(read, output),
}

export const INIT: ParsedCommand = {
  name: 'init',
  summary: 'write a commented configuration for this host',
  synopsis: ['init [--write DIR] [--force]'],
  docs: 'docs/install.md',
  about: `Writes a configuration for the daemon of this host, with a comment for each choice: the datapath that the kernel can run, the DNS
servers, and the interfaces of workloads that exist now. Nothing is intercepted or enforced before endpoints are listed in it.`,
  options: {
    write: text('DIR', 'folder of the files; default /etc/namegate'),
    force: flag('replace files that exist'),
    config: UNUSED_CONFIG,
  },
  exitCodes: '0 written, 2 wrong use, 3 a file exists or cannot be written.',
  examples: ['namegate init', 'namegate init --write ./namegate-config'],
  run: async (read, output) => await (await import('../commands/init.ts')).runInit(read, output),
}
