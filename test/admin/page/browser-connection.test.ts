// The page in a real Chromium when a view is linked, and when the daemon ends.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'puppeteer-core'
import { systemClock } from '../../../src/core/clock.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { enter, open, skip, until, violations } from '../../support/nodes/browser.ts'
import { servePage, TOKEN, type PageLab } from '../../support/nodes/page.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const POLICY = 'egress: [ { toFQDNs: [ { matchPattern: "*.cilium.io" } ] } ]'

async function serve(
  context: TestContext,
): Promise<{ readonly lab: PageLab; readonly page: Page }> {
  const { state } = mkAdmin(mkPolicyNode([POLICY]), { clock: systemClock })
  const lab = await servePage(state)
  let isStopped = false
  const stop = async (): Promise<void> => {
    if (!isStopped) await lab.stop()
    isStopped = true
  }
  context.after(stop)
  const page = await (await open(context)).newPage()
  return { lab: { ...lab, stop }, page }
}

const text = async (page: Page, selector: string): Promise<string> =>
  String(await page.evaluate(`document.querySelector('${selector}')?.innerText ?? ''`))

test(
  'the page keeps the view of a link over the sign-in, also after a wrong token',
  { skip },
  async (context) => {
    const { lab, page } = await serve(context)
    await page.goto(`http://127.0.0.1:${lab.tcp.port}/#refusals`)
    await page.type('#token', 'wrong')
    await page.keyboard.press('Enter')
    await until(page, "/Wrong token/.test(document.querySelector('[role=alert]')?.innerText)")
    await page.type('#token', TOKEN)
    await page.keyboard.press('Enter')
    await until(page, "document.querySelector('nav [aria-current]')?.hash === '#refusals'")
  },
)

test(
  'the page says of a daemon that ended that its health is unknown, and that nothing new appears',
  { skip },
  async (context) => {
    const { lab, page } = await serve(context)
    await enter(page, lab.tcp.port, '#refusals')
    await until(page, "document.querySelector('.state .badge') !== null")
    await until(page, "document.querySelector('.state [role=status]').innerText === 'live'")
    assert.match(await text(page, 'p.card'), /New refusals appear here at once/)
    const health = '.state > .badge'
    assert.match(await text(page, health), /^(ok|degraded)$/)
    await lab.stop()
    await until(page, "/lost/.test(document.querySelector('.state [role=status]').innerText)")
    assert.equal(await text(page, health), 'health unknown')
    assert.equal(await page.evaluate(`document.querySelector('${health}').className`), 'badge none')
    assert.equal(
      await text(page, 'p.card'),
      'No refusal to show. The connection is lost, so new refusals do not appear.',
    )
    assert.deepEqual(await violations(page), [], 'refusals without a connection')
    await page.evaluate("location.hash = 'overview'")
    await until(page, "document.querySelector('.health') !== null")
    assert.match(await text(page, '.health h3'), /^Health unknown: no connection to the daemon$/)
    assert.match(await text(page, '.health p'), /^This page shows the state of \d\d:\d\d:\d\d\.$/)
    for (const value of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      assert.deepEqual(await violations(page), [], `overview without a connection, ${value}`)
    }
  },
)
