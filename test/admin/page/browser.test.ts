// The page in a real Chromium, with axe-core: 1,000 flows a second without an error, every view usable, and no rule of WCAG broken. Skipped
// without a Chromium on the PATH, because scripts/setup.sh does not install one (100 MB).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'puppeteer-core'
import type { AdminState } from '../../../src/admin/state.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { open, skip, until, violations } from '../../support/nodes/browser.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { servePage, TOKEN } from '../../support/nodes/page.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const FLOWS_PER_SECOND = 1000
const LOAD_SECONDS = 5
const VIEWS = ['overview', 'refusals', 'explorer/cilium', 'endpoints']
const WIDTHS = [1280, 360]
const POLICY = `egress: [ { toFQDNs: [ { matchPattern: "*.cilium.io" } ], toPorts: [ { ports: [ { port: "443" } ] } ] }, { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.cilium.io" } ] } } ] } ]`

/** Adds flows until the returned function is called. */
function load({ flows }: AdminState): () => void {
  let number = 0
  const timer = setInterval(() => {
    for (let i = 0; i < FLOWS_PER_SECOND / 50; i++) {
      const kind = number % 3 === 0 ? 'denied' : 'answered'
      flows.addDns(Date.now(), mkDnsFlow(`n${number++ % 400}.test`, { kind }))
    }
  }, 20)
  return () => clearInterval(timer)
}

test(
  'the page shows 1,000 flows a second without an error, and breaks no rule of axe-core',
  { skip },
  async (context) => {
    const node = mkPolicyNode([POLICY])
    node.learn(node.endpoint('a').id, 'www.cilium.io', ['203.0.113.5'])
    const metrics =
      'namegate_dns_queries_total{verdict="denied"} 7\nnamegate_dns_hold_seconds_bucket{le="0.01",stage="datapath"} 3\n'
    const { state } = mkAdmin(node, {
      clock: systemClock,
      someMetrics: async () => await Promise.resolve(metrics),
    })
    const lab = await servePage(state, { write: true })
    context.after(async () => await lab.stop())
    const page = await (await open(context)).newPage()
    const errors: string[] = []
    await page.goto(`http://127.0.0.1:${lab.tcp.port}/`)
    assert.deepEqual(await violations(page), [], 'sign-in')
    page.on('console', (message) => {
      if (['error', 'warn'].includes(message.type())) errors.push(message.text())
    })
    page.on('pageerror', (error) => errors.push(String(error)))
    await page.type('#token', TOKEN)
    await page.keyboard.press('Enter')
    await until(page, "document.querySelector('.tiles') !== null")
    const stop = load(state)
    await sleep(LOAD_SECONDS * 1000)
    stop()
    await until(page, "document.querySelector('.count') !== null")
    assert.deepEqual([errors, lab.errors, lab.counts.stalled], [[], [], 0])
    for (const value of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      for (const width of WIDTHS) {
        await page.setViewport({ width, height: 800 })
        for (const view of VIEWS) await look(page, view, `${value} ${width}`)
      }
    }
    assert.deepEqual(errors, [])
  },
)

async function look(page: Page, view: string, how: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(view)}`)
  await until(
    page,
    `document.querySelector('nav [aria-current]').hash === '#${view.split('/')[0]}'`,
  )
  if (view === 'refusals') {
    await until(page, "document.querySelector('.refusal') !== null")
    await page.evaluate("document.querySelector('.refusal [aria-expanded=false]')?.click()")
    await until(page, "document.querySelector('.why dt') !== null")
  } else {
    await until(page, "document.querySelector('main .card') !== null")
  }
  assert.deepEqual(await violations(page), [], `${view} ${how}`)
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  assert.equal(
    await page.evaluate(overflow),
    0,
    `${view} ${how}: nothing reaches beyond the screen`,
  )
  const cut =
    "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('nav'))"
  assert.equal(await page.evaluate(cut), 0, `${view} ${how}: every view is offered`)
  if (view !== 'refusals') return
  const width = "document.querySelector('code.block').clientWidth / document.body.clientWidth"
  assert.ok(Number(await page.evaluate(width)) > 0.5, `${how}: the lines to copy have room`)
}

test(
  'the page audits an endpoint after a second question, and only with admin.page.write',
  { skip },
  async (context) => {
    const node = mkPolicyNode([POLICY])
    let isAudited = false
    const { state } = mkAdmin(node, {
      clock: systemClock,
      auditOf: () => ({ on: isAudited, origin: undefined }),
      setAudit: (_scope, on) => {
        isAudited = on === true
        return { kind: 'ok', endpoints: ['a'] }
      },
    })
    const browser = await open(context)
    for (const write of [false, true]) {
      const lab = await servePage(state, { write })
      context.after(async () => await lab.stop())
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${lab.tcp.port}/#endpoints`)
      await page.type('#token', TOKEN)
      await page.keyboard.press('Enter')
      await until(page, "document.querySelector('.tiles, .toolbar') !== null")
      await page.evaluate("location.hash = 'endpoints'")
      await until(page, "document.querySelector('tbody tr') !== null")
      if (!write) {
        await sleep(200)
        assert.equal(await page.evaluate("document.querySelectorAll('td button').length"), 0)
        continue
      }
      const asked = "document.querySelector('[role=group] button') === document.activeElement"
      await page.click('[aria-label="Audit a"]')
      await until(page, asked)
      assert.deepEqual(await violations(page), [], 'the question')
      await page.keyboard.press('Enter')
      await until(page, "document.querySelector('[role=group]') === null")
      assert.equal(isAudited, false, 'Cancel changes nothing')
      await page.click('[aria-label="Audit a"]')
      await until(page, asked)
      await page.click('[role=group] button:last-child')
      await until(page, `document.querySelector('[aria-label="End audit of a"]') !== null`)
      assert.equal(isAudited, true)
    }
  },
)

test(
  'the page is used by keyboard alone: skip link, views, pause, copy, why',
  { skip },
  async (context) => {
    const { state } = mkAdmin(mkPolicyNode([POLICY]), { clock: systemClock })
    const lab = await servePage(state)
    context.after(async () => await lab.stop())
    const wire = Buffer.from('\x0b<img src=x>\x04test\x00', 'latin1')
    const hostile = { kind: 'denied', wire, nameLength: wire.length } as const
    state.flows.addDns(Date.now(), mkDnsFlow('x.test', hostile))
    state.flows.addDns(Date.now(), mkDnsFlow('key.test', { kind: 'denied' }))
    const page = await (await open(context)).newPage()
    await page.goto(`http://127.0.0.1:${lab.tcp.port}/`)
    // Chromium gives the focus to the field with the first frame.
    await until(page, "document.activeElement.tagName === 'INPUT'")
    await page.keyboard.type(TOKEN)
    await page.keyboard.press('Enter')
    await until(page, "document.querySelector('.tiles') !== null")
    const names: string[] = []
    const focused =
      'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()'
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Tab')
      names.push(String(await page.evaluate(focused)))
    }
    assert.deepEqual(
      [names[0], names[1], names[2]?.slice(0, 8)],
      ['Skip to content', 'Overview', 'Refusals'],
    )
    await page.keyboard.press('Enter')
    await until(page, "document.querySelector('.refusal') !== null")
    for (let i = 0; i < 12 && !names.includes('Why was key.test refused?'); i++) {
      await page.keyboard.press('Tab')
      names.push(String(await page.evaluate(focused)))
    }
    for (const name of ['Pause', 'Clear', 'Copy the line that allows key.test']) {
      assert.ok(names.includes(name), `${name} in ${names.join(', ')}`)
    }
    await page.keyboard.press('Enter')
    await until(page, "document.querySelector('.why dt') !== null")
    assert.equal(
      await page.evaluate("document.querySelectorAll('img').length"),
      0,
      'a name is text',
    )
    await page.type('input[type=search]', ' KEY.')
    await until(page, "document.querySelectorAll('.refusal').length === 1")
    await page.click('.toolbar button:last-child')
    await until(page, "/^No refusal to show/.test(document.querySelector('p.card')?.textContent)")
  },
)
