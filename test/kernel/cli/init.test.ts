// `namegate init` on a host with workloads: it lists each workload once under a name of its own, and says if the host has no way out.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { canUseLab } from '../../support/labs/lab.ts'
import { podLab } from '../../support/labs/lab-pod.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'

const NO_WAY_OUT = /^namegate: this host has no default route, so allowed workloads reach only /m

test(
  'init lists workloads under unique names, without the way out',
  { skip: canUseLab() ?? false },
  async (t) => {
    const hosts = podLab({ pods: 2 })
    const { lab, node, pods } = hosts
    const folder = mkdtempSync(join(tmpdir(), 'ng-init-'))
    t.after(async () => {
      await hosts.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const init = async () => {
      const args = ['init', '--force', '--write', folder]
      const { code, stderr } = await node.run(PROGRAM, args, { env: { NO_COLOR: '1' } })
      assert.equal(code, 0, stderr)
      const text = readFileSync(join(folder, 'endpoints.yaml'), 'utf8')
      const found = text.matchAll(/name: (\S+), .*app: (\S+) \}, interface: (\S+) \}/g)
      return { stderr, found: [...found].map(([, name, label, nic]) => ({ name, label, nic })) }
    }
    const [one, two] = pods.map(({ host }) => host)
    assert.ok(one !== undefined && two !== undefined)
    lab.link(
      { host: node, interface: 'more1', addresses: ['10.20.9.1/24'] },
      { host: one, interface: 'eth1', addresses: ['10.20.9.2/24'] },
    )
    const { stderr, found } = await init()
    assert.doesNotMatch(stderr, NO_WAY_OUT)
    const expected = [
      [one.namespace, 'lxc1'],
      [two.namespace, 'lxc2'],
      [`${one.namespace}-2`, 'more1'],
    ].map(([name, nic]) => ({ name, label: name, nic }))
    assert.deepEqual(found, expected)
    for (const family of ['-4', '-6']) node.ip(family, 'route', 'del', 'default')
    assert.match((await init()).stderr, NO_WAY_OUT)
  },
)
