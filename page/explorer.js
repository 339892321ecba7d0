// The explorer: from a name, an address, an identity or an endpoint to its names, addresses, identities, rules and endpoints. Every
// result is a link that searches for it.

import { Badge, Component, counted, fetchJson, html, shownLabels } from './html.js'

export class Explorer extends Component {
  state = { found: undefined, fault: undefined, isBusy: false }
  #asked

  componentDidMount() {
    void this.search()
  }

  componentDidUpdate() {
    void this.search()
  }

  async search() {
    const { text } = this.props
    if (text === this.#asked || text === '') return
    this.#asked = text
    this.setState({ isBusy: true, fault: undefined })
    try {
      const found = await fetchJson(`/page/explore?text=${encodeURIComponent(text)}`)
      if (this.#asked === text) this.setState({ found, isBusy: false })
    } catch (error) {
      if (this.#asked === text)
        this.setState({ fault: error.message, found: undefined, isBusy: false })
    }
  }

  submit = (event) => {
    event.preventDefault()
    const text = event.target.elements.text.value.trim()
    this.#asked = undefined
    if (text === this.props.text) void this.search()
    else location.hash = linkTo(text)
  }

  render({ text }, { found, fault, isBusy }) {
    return html`
      <form class="toolbar" role="search" onSubmit=${this.submit}>
        <h2>Explorer</h2>
        <label class="grow">
          <span class="hidden">Name, address, identity or endpoint</span>
          <input
            key=${text}
            name="text"
            type="search"
            maxlength="253"
            placeholder="Name, address, identity or endpoint"
            defaultValue=${text}
          />
        </label>
        <button>Search</button>
      </form>
      <p class="muted" role="status">
        ${isBusy ? 'Searching …' : (fault ?? (found === undefined ? 'A search for part of a name finds every name that contains it.' : sumOf(found)))}
      </p>
      ${found !== undefined && fault === undefined && html`<${Results} found=${found} />`}
    `
  }
}

export function linkTo(text) {
  return `#explorer/${encodeURIComponent(text)}`
}

function sumOf({ names, prefixes, selectors, policies, endpoints, isCut }) {
  const all = [names, prefixes, selectors, policies, endpoints]
  if (all.every(({ length }) => length === 0)) {
    return 'Nothing that is known or allowed has this. A refused name is under Refusals.'
  }
  const counts = [
    counted(names.length, 'name'),
    counted(prefixes.length, 'prefix', 'prefixes'),
    counted(selectors.length, 'selector'),
    counted(policies.length, 'policy', 'policies'),
    counted(endpoints.length, 'endpoint'),
  ]
  return `${counts.join(', ')}${isCut ? ', and more: search for a longer text' : ''}`
}

function Link({ text }) {
  return html`<a href=${linkTo(text)}>${text}</a>`
}

const STATES = { live: 'good', grace: 'warn', connected: 'good' }

function Results({ found: { names, prefixes, selectors, policies, endpoints } }) {
  return html`
    <${List}
      title="Names"
      heads=${['Name', 'Endpoint', 'Addresses', 'Matches']}
      rows=${names.map(({ name, endpoint, addresses, selectors: texts }) => [
        html`<${Link} text=${name} />`,
        html`<${Link} text=${endpoint} />`,
        addresses.map(
          ({ address, state }) =>
            html`<div>
              <${Link} text=${address} /> <${Badge} kind=${STATES[state]}>${state}<//>
            </div>`,
        ),
        texts.map((text) => html`<div><code>${text}</code></div>`),
      ])}
    />
    <${List}
      title="Addresses and identities"
      heads=${['Prefix', 'Identity', 'Labels', 'Known from']}
      rows=${prefixes.map(({ prefix, identity, labels, owners, endpoint }) => [
        html`<${Link} text=${prefix} />${endpoint && html` <small>for ${endpoint}</small>`}`,
        html`<${Link} text=${String(identity)} />`,
        shownLabels(labels).map((label) => html`<div><code>${label}</code></div>`),
        owners.map(
          ({ kind, name }) => html`<div>${kind === 'node' ? 'this node' : `${kind} ${name}`}</div>`,
        ),
      ])}
    />
    <${List}
      title="Rules that select them"
      heads=${['Selector', 'Kind', 'Policies']}
      rows=${selectors.map(({ selector, kind, policies: users }) => [
        html`<code>${selector}</code>`,
        kind,
        users.map((each) => html`<div>${each}</div>`),
      ])}
    />
    <${List}
      title="Policies"
      heads=${['Policy', 'File', 'State', 'Endpoints']}
      rows=${policies.map(({ name, namespace, file, state, audited, endpoints: count }) => [
        namespace === null ? name : `${namespace}/${name}`,
        html`<code>${file}</code>`,
        html`${state}${audited && html` <${Badge} kind="warn">audited<//>`}`,
        count,
      ])}
    />
    <${List}
      title="Endpoints"
      heads=${['Endpoint', 'Addresses', 'Policies', 'State']}
      rows=${endpoints.map(({ name, addresses, policies: applied, enforcing, audit }) => [
        html`<${Link} text=${name} />`,
        addresses.map((address) => html`<div>${address}</div>`),
        applied.map((each) => html`<div>${each}</div>`),
        audit ? 'audited' : enforcing ? 'enforced' : 'not enforced',
      ])}
    />
  `
}

function List({ title, heads, rows }) {
  if (rows.length === 0) return null
  return html`<section class="card">
    <h3>${title}</h3>
    <div class="scroll" tabindex="0" role="region" aria-label=${title}>
      <table>
        <thead>
          <tr>
            ${heads.map((head) => html`<th scope="col">${head}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (cells) =>
              html`<tr>
                ${cells.map((cell) => html`<td>${cell}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}
