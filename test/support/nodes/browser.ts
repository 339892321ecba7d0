// A real Chromium for tests of the page.

import { accessSync, constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'
import { launch, type Browser, type Page } from 'puppeteer-core'
import { TOKEN } from './page.ts'

const LIMIT_MS = 60_000

const chromium = findChromium()
/** Why a test with a browser is skipped here; false if there is one. */
export const skip =
  chromium === undefined ? 'no chromium on the PATH (apt-get install chromium)' : false

function findChromium(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/** Starts a browser that ends with the test. */
export async function open(context: TestContext): Promise<Browser> {
  const browser = await launch({
    executablePath: chromium ?? '',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: LIMIT_MS,
    protocolTimeout: LIMIT_MS,
  })
  context.after(async () => await browser.close())
  return browser
}

/** Waits until an expression is true in the page. */
export async function until(page: Page, expression: string): Promise<void> {
  await page.waitForFunction(expression, { timeout: LIMIT_MS, polling: 50 })
}

/** The rules of axe-core that the page breaks. The inspector evaluates axe-core, so the policy of the page stays as strict as it is. */
export async function violations(page: Page): Promise<unknown> {
  const inspector = await page.createCDPSession()
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  await inspector.send('Runtime.evaluate', { expression: readFileSync(axe, 'utf8') })
  const expression =
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))'
  const { result } = await inspector.send('Runtime.evaluate', {
    expression,
    awaitPromise: true,
    returnByValue: true,
  })
  await inspector.detach()
  return result.value
}

/** Opens the page with this part after #, and gives the token. Resolves when a view is shown. */
export async function enter(page: Page, port: number, hash = ''): Promise<void> {
  await page.goto(`http://127.0.0.1:${port}/${hash}`)
  await page.type('#token', TOKEN)
  await page.keyboard.press('Enter')
  await until(page, "document.querySelector('.tiles, .toolbar') !== null")
}
