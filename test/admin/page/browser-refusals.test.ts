// The rows of refusals in a real Chromium: what they say, and how they fit on wide and narrow screens.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'puppeteer-core'
import { systemClock } from '../../../src/core/clock.ts'
import { loadAllowList } from '../../../src/policy/load/allow-list.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { enter, open, skip, until, violations } from '../../support/nodes/browser.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkEndpoint, Node, prefixOf } from '../../support/nodes/node.ts'
import { servePage } from '../../support/nodes/page.ts'

const FILE = '/run/namegate/up-box/policies/up.allow'
const CLUSTER = 'k8s:io.cilium.k8s.policy.cluster=default'

/** The page of a node whose endpoint has an allow-list, and was refused a name and an address. */
async function serve(context: TestContext, refusals = 2): Promise<Page> {
  const node = new Node()
  node.setEndpoints([mkEndpoint('box', ['10.0.0.1'], ['k8s:app=box', CLUSTER])])
  const { policies } = loadAllowList('example.com\n*.example.org\n', FILE, {
    matchLabels: new Map(),
  })
  node.setPolicies(policies)
  node.learn(node.endpoint('box').id, 'www.example.org', ['203.0.113.5'])
  const { state } = mkAdmin(node, { clock: systemClock })
  const lab = await servePage(state)
  context.after(async () => await lab.stop())
  const [policy] = policies
  assert.ok(policy !== undefined)
  const { origins } = node.core
  const rule = origins.setOf([origins.originOf(policy)])
  const endpoint = node.endpoint('box').id
  const now = Date.now()
  const denied = { kind: 'denied', endpoint, rule } as const
  state.flows.addDns(now, mkDnsFlow('example.org', denied))
  if (refusals > 1) {
    const peer = prefixOf('203.0.113.9').octets
    const packet = { endpoint, family: 4, peer, protocol: 6, port: 443, identity: 2, names: [] }
    state.flows.addPacket(now, { ...packet, kind: 'drop', rule, reason: 'policy' })
    state.flows.addPacket(now, { ...packet, kind: 'drop', rule: 0, reason: 'malformed', port: 80 })
  }
  const page = await (await open(context)).newPage()
  await page.setViewport({ width: 1280, height: 800 })
  await enter(page, lab.tcp.port, '#refusals')
  await until(page, "document.querySelector('.refusal') !== null")
  return page
}

const textOf = async (page: Page, selector: string): Promise<string> =>
  String(await page.evaluate(`document.querySelector('${selector}')?.innerText ?? ''`))

test(
  'a row of refusals names its allow-list once, below the line to copy, and says why in plain words',
  { skip },
  async (context) => {
    const page = await serve(context)
    const row = (n: number): string => `.refusal:nth-child(${n})`
    // The newest row comes first.
    const [malformed, packet, query] = [row(1), row(2), row(3)]
    assert.match(await textOf(page, malformed), /Reason: malformed\./)
    assert.doesNotMatch(await textOf(page, packet), /Reason/)
    for (const [selector, line, note] of [
      [packet, '203.0.113.9:443/tcp', `a line of ${FILE}`],
      [query, 'example.org', `a line of ${FILE}, for every port; example.org:PORT for one port`],
    ] as const) {
      const text = await textOf(page, selector)
      assert.equal(text.split(FILE).length, 2, text)
      assert.equal(await textOf(page, `${selector} dt`), 'Allow')
      assert.equal(await textOf(page, `${selector} code.block`), line)
      assert.equal(await textOf(page, `${selector} dd .muted`), note)
    }
    await page.click(`${query} [aria-expanded=false]`)
    await until(page, "document.querySelector('.why dt') !== null")
    const why = await textOf(page, '.why')
    assert.match(why, /^deny, turned on by the policy "up"$/m)
    assert.match(why, /\*\.example\.org matches names below example\.org, not example\.org itself/)
    for (const width of [1280, 360]) {
      await page.setViewport({ width, height: 800 })
      const lines = `(() => {
        const text = document.createRange()
        text.selectNodeContents(document.querySelector('${query} dt'))
        return text.getClientRects().length
      })()`
      assert.equal(await page.evaluate(lines), 1, `the label is one line at ${width}`)
      assert.deepEqual(await violations(page), [], String(width))
    }
  },
)

test('the page leaves the default cluster out of labels', { skip }, async (context) => {
  const page = await serve(context)
  await page.evaluate("location.hash = 'endpoints'")
  await until(page, "document.querySelector('tbody tr') !== null")
  assert.match(await textOf(page, 'tbody'), /k8s:app=box/)
  assert.doesNotMatch(await textOf(page, 'tbody'), /policy\.cluster/)
  await page.evaluate("location.hash = 'explorer/10.0.0.1'")
  await until(page, "document.querySelector('tbody tr') !== null")
  assert.match(await textOf(page, 'main'), /k8s:app=box/)
  assert.doesNotMatch(await textOf(page, 'main'), /policy\.cluster/)
})
