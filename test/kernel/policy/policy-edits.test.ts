// Policy files are edited in every way, one after the other, under a steady stream of packets. No packet is lost that is allowed before and
// after an edit, and what no version allows never passes. Each flow is allowed by one policy, and each edit expresses it by other
// selectors, other identities and other entries. NAMEGATE_EDITS=n makes n edits.

import assert from 'node:assert/strict'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { http } from '../../support/nodes/admin.ts'
import { until } from '../../support/peers/client.ts'
import { objectIn } from '../../support/nodes/command.ts'
import { MountedFolder } from '../../support/nodes/daemon-files.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { UdpStream, type StreamTarget } from '../../support/peers/udp-stream.ts'

const skip = canUseNamegate() ?? false

const EDITS = Number(process.env['NAMEGATE_EDITS'] ?? 45)
const RATE = 10_000
/** Source ports of each flow: packets of known connections and, at first, of new ones. */
const SOCKETS = 32
const NAME = 'www.shop.test'
const [ALLOWED_4, ALLOWED_6, OTHER_4] = ['198.18.40.1', '2001:db8:80::1', '198.18.41.1']
const ZONES = { ttl: 86_400, names: { [NAME]: [ALLOWED_4, ALLOWED_6] } }
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
/** No version of any policy opens it. */
const CLOSED = 7009
/** The port of each file's flow, by the way in which the file is edited. */
const FLOWS = {
  'in-place': { address: ALLOWED_4, port: 7001 },
  renamed: { address: ALLOWED_6, port: 7002 },
  mounted: { address: ALLOWED_4, port: 7003 },
} as const
type Way = keyof typeof FLOWS
const WAYS = ['in-place', 'renamed', 'mounted'] as const

const TARGETS: readonly StreamTarget[] = [
  ...WAYS.map((way) => ({ ...FLOWS[way], isAllowed: true })),
  ...[ALLOWED_4, ALLOWED_6, OTHER_4].map((address) => ({
    address,
    port: CLOSED,
    isAllowed: false,
  })),
]

/** Rules that allow a port, in another form for each edit. `edit` makes labels that never existed before. */
function rulesFor(port: number, edit: number): readonly string[] {
  const ports = `toPorts: [{ ports: [{ port: '${port}', protocol: UDP }] }]`
  const versions = [
    [`egress: [{ toFQDNs: [{ matchName: ${NAME} }], ${ports} }]`],
    [
      `egress: [{ toFQDNs: [{ matchPattern: '**.test' }, { matchPattern: 'w*.shop.test' }], ${ports} }]`,
    ],
    [
      `egress: [{ toCIDR: [198.18.40.0/24, '2001:db8:80::/64', 10.${edit % 256}.0.0/16], ${ports} }]`,
      `egressDeny: [{ toCIDR: [198.18.0.0/15], toPorts: [{ ports: [{ port: '${CLOSED}' }] }] }]`,
    ],
    [
      `egress: [{ toFQDNs: [{ matchPattern: '*.e${edit}.test' }] }, { toEntities: [world], ${ports} }]`,
    ],
    [
      `egress: [{ toCIDRSet: [{ cidr: 198.18.0.0/15, except: [198.18.${edit % 32}.0/24] }, { cidr: '2001:db8::/32', except: ['2001:db8:81::/48'] }], ${ports} }]`,
    ],
    [
      `egress: [{ toFQDNs: [{ matchPattern: '*.shop.test' }], ${ports} }]`,
      `egressDeny: [{ toEntities: [world], toPorts: [{ ports: [{ port: '${CLOSED}' }] }] }]`,
    ],
  ]
  return versions[edit % versions.length] ?? []
}

function policyText(way: Way, edit: number): string {
  const rules = rulesFor(FLOWS[way].port, edit).map((line) => `  ${line}\n`)
  return `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${way} }
spec:
  endpointSelector: { matchLabels: { app: shop } }
${rules.join('')}`
}

describe('policy edits', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let mounted: MountedFolder
  const path = (way: Way): string => join(namegate.folder, 'policies', `${way}.yaml`)
  const write: Readonly<Record<Way, (text: string) => void>> = {
    'in-place': (text) => writeFileSync(path('in-place'), text),
    renamed: (text) => {
      writeFileSync(`${path('renamed')}.new`, text)
      renameSync(`${path('renamed')}.new`, path('renamed'))
    },
    mounted: (text) => mounted.publish({ 'mounted.yaml': text }),
  }

  before(async () => {
    lab = podLab()
    await lab.startNameServer(ZONES)
    namegate = new Namegate(lab, { policies: {}, endpoints: [ENDPOINT] })
    mkdirSync(join(namegate.folder, 'policies'), { recursive: true })
    mounted = new MountedFolder(join(namegate.folder, 'policies', 'mount'), {})
    for (const way of WAYS) write[way](policyText(way, 0))
    await namegate.start()
    const gateway = `@${lab.pods[0]?.gateway4 ?? ''}`
    const asked = ['+short', gateway, NAME, 'A', NAME, 'AAAA']
    const { stdout } = (await lab.pods[0]?.host.run('dig', asked)) ?? { stdout: '' }
    assert.deepEqual(stdout.trim().split('\n'), [ALLOWED_4, ALLOWED_6])
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it(`in place, by rename and by a swapped mount, ${EDITS} of them, lose no allowed packet and pass no other`, async (t) => {
    const from = lab.pods[0]?.host
    assert.ok(from !== undefined)
    const dropped = await namegate.stat('drop_policy')
    const hosts = { from, to: lab.internet }
    const stream = await UdpStream.start({
      ...hosts,
      targets: TARGETS,
      rate: RATE,
      sockets: SOCKETS,
    })
    let { revision } = await status()
    for (let edit = 1; edit <= EDITS; edit++) {
      const way = WAYS[edit % WAYS.length] ?? 'in-place'
      write[way](policyText(way, edit))
      // The three files at once: each is one change, and they can settle together.
      if (edit % WAYS.length === 0 || edit === EDITS) revision = await untilRealized(revision + 1)
    }
    const { seconds, sent, lost, forbidden, passed } = await stream.stop()
    const drops = (await namegate.stat('drop_policy')) - dropped
    t.diagnostic(
      `${EDITS} edits in ${seconds.toFixed(1)} s, ${(sent / seconds).toFixed(0)} packets/s: ${sent} sent, ${lost} lost; ${forbidden} forbidden, ${passed} passed`,
    )
    assert.deepEqual({ lost, passed }, { lost: 0, passed: 0 })
    assert.equal(drops, forbidden, 'the datapath dropped exactly the forbidden ones')
    assert.ok(sent > 2000 && forbidden > 200)
  })

  async function status(): Promise<{ readonly revision: number; readonly realized: number }> {
    const { text } = await http({ socketPath: join(namegate.folder, 'admin.sock') }, '/v1/status')
    const { policyRevision, realizedRevision } = objectIn(text)
    return { revision: Number(policyRevision), realized: Number(realizedRevision) }
  }

  /** Waits until this revision or a later one is in force and no other is pending. Returns it. */
  async function untilRealized(wanted: number): Promise<number> {
    let last = { revision: 0, realized: 0 }
    const isRealized = async (): Promise<boolean> => {
      last = await status()
      return last.realized >= wanted && last.realized === last.revision
    }
    await until(`revision ${wanted}`, isRealized, 30_000, 10)
    return last.realized
  }
})
