// The behaviour of REDIRECT on the real kernel, in the place of a sidecar: namegate runs in the pod's own network namespace and takes the
// queries of the pod's processes to any server, including the pod's own loopback, but not its own queries to its upstream. Answers come
// from the asked address. Ways past it: a marked socket of another user, a socket that stays open while rules are added and removed,
// and no listener at all. A variant installs the rules.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { isBuilt } from '../../../src/native/native.ts'
import {
  askAll,
  assertAnswers,
  DATA,
  NAME,
  NOWHERE,
  OTHER_DATA,
  OTHER_ZONES,
  ZONES,
} from './asked-name.ts'
import { snapshot } from './intercept-lab.ts'
import { canUseLab, type Host } from './lab.ts'
import { compiled } from '../peers/compiled.ts'
import { DNS_4, DNS_6, OTHER_DNS_4, podLab, startHelper } from './lab-pod.ts'
import { Namegate } from './lab-namegate.ts'
import type { LabProcess } from './lab-process.ts'
import { Leaks } from './leaks.ts'

const LOOPBACK = ['127.0.0.53', '::1'] as const
const MARK = '0x4e47'
const NOBODY = '65534'
const ENDPOINTS = [
  `{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2', 127.0.0.0/8, '::1'], labels: { app: pod1 } }`,
]

const skip = canUseLab() ?? (isBuilt('conntrack') ? false : 'the native part is not built')

export interface RedirectVariant {
  readonly title: string
  /** Adds the rules in the pod, and removes them. */
  install(namegate: Namegate, pod: Host): Promise<void>
  remove(namegate: Namegate, pod: Host): Promise<void>
}

export function redirectSuite(variant: RedirectVariant): void {
  describe(variant.title, { skip }, () => {
    const lab = podLab()
    const { internet } = lab
    const pod = lab.pods[0]!.host
    const folder = mkdtempSync(join(tmpdir(), 'namegate-redirect-'))
    const marked = join(folder, 'marked-query')
    // Also counts packets of namegate itself, which runs in the pod.
    const leaks = new Leaks(internet, ['10.20.0.0/16', 'fd20::/16'])
    const namegate = new Namegate(
      { node: pod, pods: [] },
      {
        policies: {},
        endpoints: ENDPOINTS,
        listenerItems: ['{ port: 5300, mode: redirect }'],
        datapath: '{ kind: memory }',
        config: `intercept: { mark: ${MARK} }`,
      },
    )
    let asker: LabProcess
    let untouched: readonly string[]

    async function markedQuery(uid: string, server: string, protocol: string): Promise<string> {
      return (await pod.run(marked, [uid, MARK, server, protocol])).stdout.trim()
    }

    before(async () => {
      copyFileSync(compiled('marked-query'), marked)
      execFileSync('chmod', ['-R', 'a+rx', folder])
      await lab.startNameServer(ZONES)
      await startHelper(pod, 'nameserver.ts', ['0.0.0.0', '53', JSON.stringify(OTHER_ZONES)])
      asker = await startHelper(pod, 'kept-asker.ts', [OTHER_DNS_4, NAME, '50'])
      untouched = snapshot(pod)
    })
    after(async () => {
      await namegate.close()
      await lab.close()
      rmSync(folder, { recursive: true, force: true })
    })

    it('reaches every server without interception, as the other tests assume', async () => {
      await assertAnswers(pod, [OTHER_DNS_4, DNS_6], DATA)
      await assertAnswers(pod, ['127.0.0.1'], OTHER_DATA)
      for (const protocol of ['udp', 'tcp']) {
        assert.equal(await markedQuery(NOBODY, OTHER_DNS_4, protocol), 'answer')
      }
      await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
    })

    it('refuses without a listener, also to a socket that was open before', async () => {
      await variant.install(namegate, pod)
      const leaked = await leaks.during(async () => {
        const answers = await askAll(pod, [OTHER_DNS_4, DNS_6, ...NOWHERE])
        assert.deepEqual([...new Set(answers)], ['no answer'])
        assert.equal(await markedQuery(NOBODY, OTHER_DNS_4, 'udp'), 'none')
      })
      assert.equal(leaked, 0)
    })

    it('answers from any asked address', async () => {
      await namegate.start({ attached: [] })
      const servers = [...NOWHERE, ...LOOPBACK, OTHER_DNS_4, DNS_4, DNS_6]
      await assertAnswers(pod, servers, DATA)
      asker.stdout = ''
      await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
    })

    it('passes no socket that only has the mark, and namegate only to its upstream', async () => {
      // Counts at a server that is not namegate's upstream, so namegate itself sends nothing there.
      const other = new Leaks(internet, ['10.20.1.2/32'], `ip daddr ${OTHER_DNS_4}`)
      for (const protocol of ['udp', 'tcp']) {
        assert.equal(await markedQuery(NOBODY, OTHER_DNS_4, protocol), 'answer')
        assert.equal(await markedQuery('0', OTHER_DNS_4, protocol), 'answer')
      }
      assert.equal(other.count, 0)
      await namegate.kill()
      // The daemon is killed, so every packet now is a leak.
      const leaked = await leaks.during(async () => {
        assert.equal(await markedQuery(NOBODY, DNS_4, 'udp'), 'none')
        assert.equal(await markedQuery(NOBODY, DNS_4, 'tcp'), 'none')
      })
      assert.equal(leaked, 0)
    })

    it('stays closed after a kill, and answers again after a restart', async () => {
      const leaked = await leaks.during(async () => {
        assert.deepEqual(
          [...new Set(await askAll(pod, [OTHER_DNS_4, DNS_6, ...LOOPBACK]))],
          ['no answer'],
        )
      })
      assert.equal(leaked, 0)
      await namegate.start({ attached: [] })
      asker.stdout = ''
      await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
    })

    it('leaves no rule behind, and the kept socket reaches its server again', async () => {
      await variant.remove(namegate, pod)
      // iptables leaves its tables, empty.
      const left = snapshot(pod).filter((line) => !untouched.includes(line))
      assert.deepEqual(
        left.filter((line) => /namegate|mark|redirect|dport/i.test(line)),
        [],
      )
      await namegate.stop()
      asker.stdout = ''
      await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
    })
  })
}
