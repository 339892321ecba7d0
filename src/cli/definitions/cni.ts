// This file defines `namegate cni`, which prepares a node of a cluster. The code of a command is loaded when the command is called.

import type { ParsedCommand } from '../command.ts'
import { flag, text, UNUSED_CONFIG } from './options.ts'

export const CNI: ParsedCommand = {
  name: 'cni',
  summary:
    'install or remove the CNI plugin that puts the policies of each pod in force before it starts',
  synopsis: [
    'cni install|check [--conf-dir DIR] [--bin-dir DIR] [OPTIONS]',
    'cni uninstall [--keep-program] [--conf-dir DIR] [--bin-dir DIR]',
  ],
  words: ['install', 'check', 'uninstall'],
  docs: 'docs/cni.md',
  about: `install    copies the program namegate-cni, and writes 0-namegate.conflist: a copy of the network configuration in use, with
           namegate-cni behind its plugins. The file in use stays as it is. A second install changes only what differs
check      says if install with the same options would change anything
uninstall  removes the copy and the program, so that the node's own network configuration is in use again`,
  options: {
    'conf-dir': text('DIR', 'folder of network configurations; default /etc/cni/net.d'),
    'bin-dir': text('DIR', 'folder of plugins; default /opt/cni/bin'),
    socket: text('PATH', "the daemon's admin socket on the node; default /run/namegate/admin.sock"),
    'on-failure': text(
      'WHAT',
      `without the daemon: refuse the pod (default), or close its interface until the eBPF datapath
of the daemon has its policies`,
    ),
    'timeout-seconds': text('N', 'how long the plugin waits for the daemon; default 15'),
    'keep-program': flag('uninstall: keep the program for pods that were made with it'),
    config: UNUSED_CONFIG,
  },
  exitCodes: `0 ok, 1 check found a difference, 2 wrong use or a network configuration that is not understood, 3 no network
configuration, or no right to write.`,
  examples: [
    'namegate cni install',
    'namegate cni install --conf-dir /host/etc/cni/net.d --bin-dir /host/opt/cni/bin',
    'namegate cni uninstall',
  ],
  run: async (read, output) => (await import('../commands/cni.ts')).runCni(read, output),
}
