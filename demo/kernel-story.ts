// The demo with root: what a pod can and cannot do while namegate writes the kernel's maps, while it is dead, and
// with the glass broken. Every line of output is what the tool printed.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Output } from '../test/support/labs/lab-process.ts'
import { DNS_4, podLab, type PodLab } from '../test/support/labs/lab-pod.ts'
import { Namegate } from './namegate.ts'
import { tellNames } from './names-story.ts'
import { PodShell } from './pod-shell.ts'
import type { Story } from './story.ts'
import { Workspace } from './workspace.ts'
import { SHOP, STRANGER, ZONES, DENIED_NAME } from './world.ts'

const FLOWS_MS = 5000

interface Scene {
  readonly story: Story
  readonly lab: PodLab
  readonly shell: PodShell
  readonly namegate: Namegate
}

export async function tellKernelStory(story: Story): Promise<void> {
  story.title('namegate: DNS names in, kernel identities out')
  const lab = podLab()
  const workspace = new Workspace()
  await Promise.all([lab.startNameServer(ZONES), lab.startWebServer([80, 8080])])
  const [pod] = lab.pods
  if (pod === undefined) throw new Error('The lab has no pod')
  const namegate = new Namegate(
    workspace,
    {
      listeners: [pod.gateway4, pod.gateway6],
      port: 53,
      upstream: `${DNS_4}:53`,
      datapath: `{ kind: ebpf, ebpf: { pin-path: '${workspace.mountBpf()}/namegate' } }`,
      endpoint: `{ name: shop, addresses: ['${pod.address4}', '${pod.address6}'], labels: { app: shop }, interface: ${pod.interface} }`,
    },
    lab.node,
  )
  const daemon = await namegate.start()
  const scene: Scene = { story, lab, shell: new PodShell(pod, workspace), namegate }
  story.say(
    `pod ${pod.address4}  --  node with namegate, eBPF on ${pod.interface}  --  "the internet"`,
  )
  story.say(
    'policy (demo/policy.yaml): *.shop.example, *.cloud.example, bucket.s3.example; nothing by address',
  )
  await tellBlocked(scene)
  await tellFirstPacket(scene)
  await tellDeniedName(scene)
  await tellNames({
    story,
    namegate,
    prompt: 'pod$',
    dig: async (...args) => await scene.shell.dig(...args),
  })
  await tellAudit(scene)
  const stream = scene.shell.stream(`http://${SHOP.address}/stream`)
  await stream.untilOutput(/^3$/m)
  daemon.kill('SIGKILL')
  await daemon.ended(2000)
  await tellDead(scene, () => stream.stdout.trim().split('\n').length)
  await tellBreakGlass(scene)
  await namegate.run('datapath', 'detach')
  await lab.close()
  workspace.remove()
}

/** curl's own output, and whether it got through. */
async function visit(scene: Scene, address: string): Promise<boolean> {
  const { code, stdout, stderr } = await scene.shell.curl(`http://${address}/`)
  scene.story.command(`pod$ curl http://${address}/`, stdout + stderr)
  return code === 0
}

async function tellBlocked(scene: Scene): Promise<void> {
  scene.story.heading('Blocked by address: no allowed name has resolved to it')
  const passed = await visit(scene, STRANGER)
  const passedShop = await visit(scene, SHOP.address)
  scene.story.check(
    !passed && !passedShop,
    'the kernel drops both; even the shop, until someone asks for its name',
  )
}

async function tellFirstPacket({ story, shell }: Scene): Promise<void> {
  story.heading('Name resolved, connection on the first packet')
  const answer = await shell.dig('+noall', '+answer', SHOP.name)
  story.command(`pod$ dig +noall +answer ${SHOP.name}`, answer)
  const lostBefore = await shell.lostFirstPackets()
  const format = 'name resolved after %{time_namelookup} s, connected after %{time_connect} s\n'
  const { code, stdout, stderr } = await shell.curl(`http://${SHOP.name}/`, '-w', format)
  story.command(`pod$ curl -w '...' http://${SHOP.name}/`, stdout + stderr)
  const lost = (await shell.lostFirstPackets()) - lostBefore
  story.check(code === 0 && lost === 0, `connected, ${lost} SYNs sent again`, stderr)
}

async function tellDeniedName({ story, shell }: Scene): Promise<void> {
  story.heading('A name that policy does not allow')
  const answer = await shell.dig('+noall', '+comments', DENIED_NAME)
  story.command(`pod$ dig +noall +comments ${DENIED_NAME}`, answer)
  story.check(
    /status: REFUSED/.test(answer) && /EDE: 15/.test(answer),
    'REFUSED, and EDE 15 says why',
  )
}

async function tellAudit(scene: Scene): Promise<void> {
  const { story, namegate } = scene
  story.heading('Audit mode: let it pass, and say what would have been dropped')
  await namegate.run('audit', 'on', '--endpoint', 'shop')
  story.command('node$ namegate audit on --endpoint shop', '')
  const passed = await visit(scene, STRANGER)
  const flows = await flowsTo(namegate, STRANGER)
  story.command('node$ namegate flows --verdict audit', shorten(flows.stdout + flows.stderr, 2))
  const reported = flows.stdout.includes(STRANGER)
  await namegate.run('audit', 'off', '--endpoint', 'shop')
  story.command('node$ namegate audit off --endpoint shop', '')
  const passedAfter = await visit(scene, STRANGER)
  story.check(
    passed && reported && !passedAfter,
    'passed and reported while on, dropped again after',
  )
}

/** What is audited, once it shows: a quiet daemon looks at the kernel's events once a second. */
async function flowsTo(namegate: Namegate, address: string): Promise<Output> {
  const until = performance.now() + FLOWS_MS
  for (;;) {
    const flows = await namegate.run('flows', '--verdict', 'audit')
    if (flows.stdout.includes(address) || performance.now() > until) return flows
    await sleep(100)
  }
}

function shorten(text: string, lines: number): string {
  const all = text.trim().split('\n')
  const rest = all.length - lines
  return rest <= 0 ? text : [...all.slice(0, lines), `(${rest} more, one a packet)`].join('\n')
}

async function tellDead(scene: Scene, linesSeen: () => number): Promise<void> {
  const { story } = scene
  story.heading('The daemon killed (kill -9): enforcement is still there')
  const before = linesSeen()
  const allowed = await visit(scene, SHOP.address)
  const denied = await visit(scene, STRANGER)
  await sleep(300)
  const after = linesSeen()
  story.say(`a download that began before: ${before} lines when the daemon died, ${after} now`)
  story.check(
    allowed && !denied && after > before,
    'allowed stays allowed, denied stays denied, open connections move on',
  )
}

async function tellBreakGlass(scene: Scene): Promise<void> {
  const { story, namegate } = scene
  story.heading('Break glass: works on the pinned maps, daemon or not')
  const bypass = await namegate.run('datapath', 'mode', 'bypass')
  story.command('node$ namegate datapath mode bypass', bypass.stdout + bypass.stderr)
  const open = await visit(scene, STRANGER)
  const enforce = await namegate.run('datapath', 'mode', 'enforce')
  story.command('node$ namegate datapath mode enforce', enforce.stdout + enforce.stderr)
  const closed = !(await visit(scene, STRANGER))
  story.check(open && closed, 'everything passes in bypass, and is closed again after')
}
