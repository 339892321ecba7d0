// The demo without root: the same names and policy against the memory datapath, over loopback. It shows what namegate
// decides and what it would give a kernel; nothing fences this machine.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { LabProcess, run } from '../test/support/labs/lab-process.ts'
import { Namegate, prefixesOf } from './namegate.ts'
import { tellNames, type Dig } from './names-story.ts'
import { ownDig } from './own-dig.ts'
import type { Story } from './story.ts'
import { Workspace } from './workspace.ts'
import { DENIED_NAME, SHOP, ZONES } from './world.ts'
import { programArgs } from '../test/support/labs/program.ts'

export async function tellMemoryStory(story: Story, reason: string): Promise<void> {
  story.title('namegate: DNS names in, kernel identities out')
  story.say(`without the kernel (${reason}): the same names against the memory datapath`)
  const workspace = new Workspace()
  const [upstreamPort, port] = [await freePort(), await freePort()]
  const nameServer = await startNameServer(upstreamPort)
  const namegate = new Namegate(workspace, {
    listeners: ['127.0.0.1'],
    port,
    upstream: `127.0.0.1:${upstreamPort}`,
    datapath: '{ kind: memory }',
    endpoint: "{ name: shop, addresses: ['127.0.0.1'], labels: { app: shop } }",
  })
  const daemon = await namegate.start()
  const hasDig = (await run('dig', ['-v'])).code === 0
  if (!hasDig) story.say('dig is not installed (package bind9-dnsutils): a stand-in asks instead')
  const dig = async (...args: readonly string[]) =>
    hasDig
      ? (await run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=2', ...args]))
          .stdout
      : await ownDig(port, args)
  await tellAllowed(story, namegate, dig)
  await tellDenied(story, dig)
  await tellNames({ story, namegate, dig, prompt: '$' })
  await daemon.stop()
  await nameServer.stop()
  workspace.remove()
  story.say(
    'With root the same demo runs hosts of its own and the kernel drops packets: sudo npm run demo',
  )
}

async function tellAllowed(story: Story, namegate: Namegate, dig: Dig): Promise<void> {
  story.heading(
    'A name that policy allows: its address is in the datapath before the answer leaves',
  )
  const known = async () =>
    (await prefixesOf(namegate)).some(({ prefix }) => prefix === `${SHOP.address}/32`)
  const before = await known()
  story.command(`$ dig +noall +answer ${SHOP.name}`, await dig('+noall', '+answer', SHOP.name))
  const after = await known()
  story.check(!before && after, `${SHOP.address}: unknown before the answer, known after`)
}

async function tellDenied(story: Story, dig: Dig): Promise<void> {
  story.heading('A name that policy does not allow')
  const answer = await dig('+noall', '+comments', DENIED_NAME)
  story.command(`$ dig +noall +comments ${DENIED_NAME}`, answer)
  story.check(
    /status: REFUSED/.test(answer) && /EDE: 15/.test(answer),
    'REFUSED, and EDE 15 says why',
  )
}

async function startNameServer(port: number): Promise<LabProcess> {
  const path = fileURLToPath(new URL('../test/support/peers/nameserver.ts', import.meta.url))
  const args = programArgs(path, '127.0.0.1', String(port), JSON.stringify(ZONES))
  const server = new LabProcess(process.execPath, args)
  process.on('exit', () => server.kill('SIGKILL'))
  await server.untilOutput(/^ready$/m)
  return server
}

/** A UDP port that was free a moment ago. */
async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}
