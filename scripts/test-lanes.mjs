// Runs test processes side by side, so that the processors are busy until the end:
// - first the files that start daemons or wait, two at a time; then kernel and conformance files, three at a time. Many of both wait most
//   of the time, so further ones start while the processors have time to spare. More at once than the processors can serve would only make
//   each of them slower, until the limits of the tests are too short;
// - beside them, one process at a time of those that only compute. It takes what the others leave of the processors.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isComputing, isKernel } from './test-order.mjs'

const LANES = 2
/** Each lab has namespaces, pins and folders of its own. */
const KERNEL_LANES = 3
/** Further processes, and each starts when the processors had this share of their time to spare for LOOK_MS. */
const SPARE_MOST = 5
const SPARE = 0.2
const LOOK_MS = 1500

/**
 * `queue`: lists of files, the longest first. `run` runs the files of one process, behind all others if its second argument is true. Ends
 * early when `isOver`.
 */
export async function runInLanes(queue, run, isOver) {
  const kernel = queue.filter(([file]) => isKernel(file))
  const computing = kernel.length === 0 ? [] : queue.filter(isComputing)
  const others = queue.filter((files) => !kernel.includes(files) && !computing.includes(files))
  const lane = async (...queues) => {
    for (const own of queues) while (own.length > 0 && !isOver()) await run(own.shift(), false)
  }
  let begin
  const begun = new Promise((resolve) => (begin = resolve))
  const first = async () => {
    await lane(others)
    begin()
    await lane(kernel, computing)
  }
  const more = async () => {
    await begun
    await lane(kernel, computing)
  }
  const spare = async () => {
    const running = new Set()
    const waiting = () => [others, kernel].find((own) => own.length > 0)
    while (waiting() !== undefined && !isOver()) {
      if ((await spareTime()) < SPARE || running.size >= SPARE_MOST) continue
      // The shortest, so that a busy time that follows does not find them running for long.
      const files = waiting()?.pop()
      if (files === undefined) continue
      const each = run(files, false).then(() => running.delete(each))
      running.add(each)
    }
    await Promise.all(running)
  }
  const behind = async () => {
    while (computing.length > 0 && !isOver()) await run(computing.shift(), true)
  }
  const lanes = [
    ...Array.from({ length: LANES }, () => first()),
    ...Array.from({ length: Math.max(0, KERNEL_LANES - LANES) }, () => more()),
    spare(),
    behind(),
  ]
  await Promise.all(lanes)
}

/** The share of the processors' time of LOOK_MS that was idle, or went to processes that stay behind. */
async function spareTime() {
  const [before, spareBefore] = times()
  await sleep(LOOK_MS)
  const [after, spareAfter] = times()
  return (spareAfter - spareBefore) / Math.max(1, after - before)
}

/** All time, and the time to spare: user, nice, system, idle, iowait, ... */
function times() {
  const [, ...each] = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/ +/).map(Number)
  const [, nice = 0, , idle = 0, waiting = 0] = each
  return [each.reduce((sum, time) => sum + time, 0), nice + idle + waiting]
}
