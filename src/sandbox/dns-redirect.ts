// Every query that the command sends, to whatever server, over UDP or TCP, goes to the gate's listeners on its own
// loopback. A table of its own in the command's network namespace, which ends with it.

import { mustRun, type RunTool } from '../intercept/tools.ts'

const SCRIPT = `add table inet namegate-exec
add chain inet namegate-exec dns { type nat hook output priority -100; }
add rule inet namegate-exec dns meta l4proto { tcp, udp } th dport 53 redirect to :53
`

/** `pid`: the launcher. Without privilege its user namespace is entered as well. */
export async function redirectDns(run: RunTool, pid: number, privileged: boolean): Promise<void> {
  const user = privileged ? [] : [`--user=/proc/${pid}/ns/user`, '--preserve-credentials']
  await mustRun(run, 'nsenter', [...user, `--net=/proc/${pid}/ns/net`, 'nft', '-f', '-'], SCRIPT)
}
