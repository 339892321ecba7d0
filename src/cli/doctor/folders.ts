// Checks the folders of `namegate doctor`: the state folder, the pin path in bpffs, and the folder of the admin socket.

import { statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Findings, type Check, type Examined, type Finding } from './finding.ts'

/** The magic number of bpffs (statfs(2)). */
const BPF_FS_MAGIC = 0xcafe4a11
/** Room for the largest checkpoint and journal of usual limits, besides flows. */
const STATE_OCTETS = 64 * 1024 * 1024
const MEBIBYTE = 1024 * 1024

export const checkStateFolder: Check = (examined) => {
  const finding = new Findings('state folder')
  const { machine, config } = examined
  const { directory } = config.state
  const refused = writeFinding(finding, examined, directory)
  if (refused !== undefined) return [refused]
  const { at } = machine.writable(directory)
  const { bavail, bsize } = statfsSync(join(machine.root, at))
  const free = bavail * bsize
  const keepsFlows = config.flows.outputs.includes('file')
  const wanted = STATE_OCTETS + (keepsFlows ? config.flows.maxOctets : 0)
  const room = `${Math.floor(free / MEBIBYTE)} MiB free`
  if (free >= wanted) return [finding.ok(`${directory}, ${room}`)]
  return [
    finding.warning(
      `${directory} has ${room}; state and flows can take ${Math.ceil(wanted / MEBIBYTE)} MiB`,
      `free some space (df ${at}), or set a smaller flows.max-size`,
    ),
  ]
}

export const checkSocketFolder: Check = (examined) => {
  const finding = new Findings('admin socket')
  const { socket } = examined.config.admin
  return [writeFinding(finding, examined, dirname(socket)) ?? finding.ok(socket)]
}

export const checkPinPath: Check = (examined) => {
  const finding = new Findings('pin path')
  const { machine, config } = examined
  const { pinPath, kind } = config.datapath
  if (kind !== 'ebpf') return [finding.ok('not needed without datapath ebpf')]
  const { at, can } = machine.writable(pinPath)
  if (!isBpffs(join(machine.root, at))) {
    const isUsual = pinPath.startsWith('/sys/fs/bpf/')
    const folder = isUsual ? '/sys/fs/bpf' : dirname(pinPath)
    const remedy = isUsual
      ? `mount -t bpf bpf ${folder}`
      : 'give a datapath.ebpf.pin-path below /sys/fs/bpf'
    const found = `no bpffs is mounted at ${folder}`
    return [
      isUsual
        ? finding.warning(`${found}; the daemon mounts it if it has CAP_SYS_ADMIN`, remedy)
        : finding.problem(found, remedy),
    ]
  }
  if (can) return [finding.ok(pinPath)]
  return [notWritable(finding, examined, pinPath, at)]
}

/** True if the folder is in a bpffs, and false also if only another user can look at it. */
function isBpffs(folder: string): boolean {
  try {
    return statfsSync(folder).type === BPF_FS_MAGIC
  } catch {
    return false
  }
}

/** Returns a finding if a folder cannot be made or written. */
function writeFinding(finding: Findings, examined: Examined, folder: string): Finding | undefined {
  const { at, can } = examined.machine.writable(folder)
  return can ? undefined : notWritable(finding, examined, folder, at)
}

function notWritable(finding: Findings, { status }: Examined, path: string, at: string): Finding {
  if (status !== undefined) return finding.ok(`${path}; only the daemon's user can write there`)
  const found = `${path}: this user cannot write to ${at}`
  return process.geteuid?.() === 0
    ? finding.problem(found, `make ${at} writable, such as: mount -o remount,rw ${at}`)
    : finding.unchecked(found, 'run this command as the user of the daemon, or as root')
}
