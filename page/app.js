// The page: its head, its four views, and the connection to the daemon. The part of the address after # chooses the view.

import { Badge, Component, html, render } from './html.js'
import { Endpoints } from './endpoints.js'
import { Explorer } from './explorer.js'
import { Live } from './live.js'
import { Overview } from './overview.js'
import { Refusals } from './refusals.js'

const VIEWS = [
  ['overview', 'Overview'],
  ['refusals', 'Refusals'],
  ['explorer', 'Explorer'],
  ['endpoints', 'Endpoints'],
]
const CONNECTIONS = {
  connecting: ['other', 'connecting'],
  live: ['good', 'live'],
  lost: ['bad', 'connection lost, trying again'],
}

class App extends Component {
  state = placeOf(location.hash)
  #isDue = false
  live = new Live(() => this.#changed())

  componentDidMount() {
    addEventListener('hashchange', () => {
      this.setState(placeOf(location.hash))
      // A screen reader continues at the new view. The window shows it from its top, with the head of the page.
      document.querySelector('main')?.focus({ preventScroll: true })
      scrollTo(0, 0)
    })
  }

  /** Draws once per frame, however many lines come. */
  #changed() {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => {
      this.#isDue = false
      this.forceUpdate()
    })
  }

  render(_props, { view, text }) {
    const { live } = this
    const [kind, words] = CONNECTIONS[live.connection]
    const { status } = live.overview ?? {}
    const refused = live.refusals.size
    return html`
      <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
      <header>
        <h1>namegate</h1>
        <nav aria-label="Views">
          ${VIEWS.map(
            ([name, title]) =>
              html`<a href=${`#${name}`} aria-current=${name === view ? 'page' : undefined}>
                ${title}${name === 'refusals' && refused > 0 && html` <span class="count">${refused}</span>`}
              </a>`,
          )}
        </nav>
        <div class="state">
          ${status && html`<${HealthBadge} health=${status.health} isLive=${live.connection === 'live'} />`}
          <span role="status"><${Badge} kind=${kind}>${words}<//></span>
          ${status && html`<small>${status.version}</small>`}
        </div>
      </header>
      <main id="main" tabindex="-1">
        ${view === 'refusals' && html`<${Refusals} live=${live} />`}
        ${view === 'explorer' && html`<${Explorer} text=${text} />`}
        ${view === 'endpoints' && html`<${Endpoints} />`}
        ${view === 'overview' && html`<${Overview} live=${live} />`}
      </main>
    `
  }
}

/** The health that the daemon reported last is not its present health while there is no connection. */
function HealthBadge({ health, isLive }) {
  if (!isLive) return html`<${Badge} kind="none">health unknown<//>`
  return html`<${Badge} kind=${health === 'ok' ? 'good' : 'bad'}>${health}<//>`
}

/** `#explorer/www.shop.test` -> { view: 'explorer', text: 'www.shop.test' }. */
function placeOf(hash) {
  const [name = '', ...rest] = hash.slice(1).split('/')
  const view = VIEWS.some(([known]) => known === name) ? name : 'overview'
  let text = ''
  try {
    text = decodeURIComponent(rest.join('/'))
  } catch {
    // An address that someone typed with a lone % searches for nothing.
  }
  return { view, text }
}

function skip(event) {
  event.preventDefault()
  document.querySelector('main')?.focus()
}

const root = document.getElementById('app')
root.replaceChildren()
render(html`<${App} />`, root)
