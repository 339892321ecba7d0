// Counts, axes and tables of the page in a real Chromium: one thing is not called by its plural, a chart has each time once, and a table that
// is wider than the screen shows it.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'puppeteer-core'
import { systemClock } from '../../../src/core/clock.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { enter, open, skip, until } from '../../support/nodes/browser.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkEndpoint, mkPolicies, Node } from '../../support/nodes/node.ts'
import { servePage } from '../../support/nodes/page.ts'

const POLICY = `egress:
- { toFQDNs: [ { matchName: www.shop.test } ] }
- { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchName: www.shop.test } ] } } ] }
`

async function serve(
  context: TestContext,
  names: readonly string[],
  before: (page: Page) => Promise<unknown> = async () => await Promise.resolve(),
): Promise<Page> {
  const node = new Node()
  node.setEndpoints(names.map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
  node.setPolicies(mkPolicies(POLICY))
  for (const name of names) node.learn(node.endpoint(name).id, 'www.shop.test', ['203.0.113.5'])
  const metrics = 'namegate_names 1\nnamegate_ipcache_prefixes 14\n'
  const someMetrics = async (): Promise<string> => await Promise.resolve(metrics)
  const { state } = mkAdmin(node, { clock: systemClock, someMetrics })
  for (const name of names) {
    const endpoint = node.endpoint(name).id
    state.flows.addDns(Date.now(), mkDnsFlow('evil.test', { kind: 'denied', endpoint }))
  }
  const lab = await servePage(state)
  context.after(async () => await lab.stop())
  const page = await (await open(context)).newPage()
  await before(page)
  await enter(page, lab.tcp.port)
  return page
}

/** Goes to a view, and waits until the words about its list are these. */
async function says(page: Page, view: string, words: string): Promise<void> {
  await page.evaluate(`location.hash = '${view}'`)
  await until(page, `document.querySelector('main > p.muted')?.innerText === '${words}'`)
}

test('the page says of one thing that it is one', { skip }, async (context) => {
  const page = await serve(context, ['shop'])
  await says(page, 'refusals', '1 refusal')
  await says(page, 'endpoints', '1 endpoint')
  await says(page, 'explorer/www.shop.test', '1 name, 1 prefix, 1 selector, 1 policy, 1 endpoint')
})

test('the page says of several things how many of all it shows', { skip }, async (context) => {
  const page = await serve(context, ['shop', 'mail'])
  await says(page, 'refusals', '2 different refusals')
  await page.type('input[type=search]', 'mail')
  await until(page, "/^1 of 2 /.test(document.querySelector('main > p.muted').innerText)")
  await says(page, 'endpoints', '2 endpoints')
  await page.type('input[type=search]', 'mail')
  await until(page, "/^1 of 2 endpoints/.test(document.querySelector('main > p.muted').innerText)")
})

test('the tile about names says which prefixes it counts', { skip }, async (context) => {
  const page = await serve(context, ['shop'])
  await until(page, "/14 prefixes in all/.test(document.querySelector('.tiles').innerText)")
  const tiles = String(await page.evaluate("document.querySelector('.tiles').innerText"))
  assert.match(tiles, /14 prefixes in all: of names, rules and this host/)
})

/** Keeps the times of day that each drawing of a chart writes below its axis. */
const RECORD = `
  globalThis.drawn = []
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.clearRect = function (...given) {
    drawn.push([])
    return clearRect.apply(this, given)
  }
  CanvasRenderingContext2D.prototype.fillText = function (text, ...given) {
    if (/^\\d+:\\d+:\\d+$/.test(text)) drawn.at(-1)?.push(text)
    return fillText.call(this, text, ...given)
  }`

test('a chart writes each time once from the first second on', { skip }, async (context) => {
  const page = await serve(context, ['shop'], async (each) => {
    await each.setViewport({ width: 1280, height: 800 })
    await each.evaluateOnNewDocument(RECORD)
  })
  await until(page, 'new Set(drawn.flat()).size > 4')
  const twice = await page.evaluate('drawn.filter((all) => new Set(all).size < all.length)')
  assert.deepEqual(twice, [])
})

test(
  'tables on a narrow screen keep addresses whole, and show that they continue',
  { skip },
  async (context) => {
    const page = await serve(context, ['shop'])
    await page.setViewport({ width: 360, height: 800 })
    await until(page, "document.querySelector('[aria-label=Servers] code') !== null")
    const lines = "document.querySelector('[aria-label=Servers] code').getClientRects().length"
    assert.equal(await page.evaluate(lines), 1, 'the address of a server')
    await page.evaluate("location.hash = 'endpoints'")
    await until(page, "document.querySelector('[aria-label=Endpoints] tbody tr') !== null")
    const table = "document.querySelector('[aria-label=Endpoints]')"
    assert.equal(await page.evaluate(`${table}.scrollWidth > ${table}.clientWidth`), true)
    const shadow = await page.evaluate(`getComputedStyle(${table}).backgroundImage`)
    assert.match(String(shadow), /gradient/)
  },
)
