// Another program switches off the forwarding of the host, and allowed connections hang. The commands that a user then runs name the cause
// and the remedy.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { ALLOWED, UpLab } from '../../support/labs/up-lab.ts'

const skip = canUseNamegate() ?? false

test(
  'up warns of the interface that does not forward, and of no other setting',
  { skip },
  async (t) => {
    const lab = new UpLab(1)
    t.after(async () => await lab.close())
    await lab.serve()
    const { host, interface: name } = lab.pod(0)
    const warnings = async (forwards: number, own: number): Promise<string> => {
      // The setting of the host is copied to all interfaces when it changes.
      lab.node.sysctl(`net.ipv4.ip_forward=${1 - forwards}`)
      lab.node.sysctl(`net.ipv4.ip_forward=${forwards}`)
      lab.node.sysctl(`net.ipv4.conf.${name}.forwarding=${own}`)
      const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
      await run.protects()
      return (await run.end())?.stderr ?? ''
    }
    assert.doesNotMatch(await warnings(0, 1), /forward/)
    assert.match(
      await warnings(0, 0),
      /not forward IPv4 packets: sysctl -w net\.ipv4\.ip_forward=1$/m,
    )
    assert.match(
      await warnings(1, 0),
      new RegExp(
        `not forward IPv4 packets: sysctl -w net\\.ipv4\\.conf\\.${name}\\.forwarding=1$`,
        'm',
      ),
    )
  },
)

test('explain, status and doctor say why allowed connections hang', { skip }, async (t) => {
  const lab = new UpLab(1)
  t.after(async () => await lab.close())
  await lab.serve()
  const { host, interface: name } = lab.pod(0)
  const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', ALLOWED)
  await run.protects()
  const explain = ['explain', '--as', host.namespace, '--name', ALLOWED, '--port', '80/TCP']
  const said = async (...words: readonly string[]): Promise<string> =>
    (await run.command('/', ...words)).stdout

  assert.equal(await lab.fetch(host, ALLOWED), '200')
  for (const words of [explain, ['status']]) {
    assert.doesNotMatch(await said(...words), /ip_forward/)
  }
  lab.node.sysctl('net.ipv4.ip_forward=0')
  assert.equal(await lab.fetch(host, ALLOWED, 1), '000')
  for (const words of [explain, ['status'], ['doctor']]) {
    const text = await said(...words)
    assert.match(text, /not forward IPv4 packets.* hang.*: sysctl -w net\.ipv4\.ip_forward=1/)
  }
  lab.node.sysctl(`net.ipv4.conf.${name}.forwarding=1`)
  assert.doesNotMatch(
    await said(...explain),
    /ip_forward/,
    'the interface has forwarding of its own',
  )
  lab.node.sysctl('net.ipv4.ip_forward=1')
  assert.equal(await lab.fetch(host, ALLOWED), '200')
  assert.equal((await run.end())?.code, 0)
})
