// Endpoints with their policies, and whether policy is enforced, only audited, or neither.

import {
  Badge,
  Component,
  ConfirmButton,
  countedOf,
  fetchJson,
  FilterField,
  filterRows,
  html,
  shownLabels,
} from './html.js'
import { linkTo } from './explorer.js'

const SHOWN_MAX = 500
const AGAIN_MS = 5000

export class Endpoints extends Component {
  state = { list: undefined, fault: undefined, filter: '', mayWrite: false }

  componentDidMount() {
    void this.load()
    void this.loadRights()
    this.timer = setInterval(() => void this.load(), AGAIN_MS)
  }

  componentWillUnmount() {
    clearInterval(this.timer)
  }

  async load() {
    if (document.hidden) return
    try {
      this.setState({ list: await fetchJson('/page/endpoints'), fault: undefined })
    } catch (error) {
      this.setState({ fault: error.message })
    }
  }

  async loadRights() {
    try {
      this.setState({ mayWrite: (await fetchJson('/page/rights')).write })
    } catch {
      // Without an answer the page only reads.
    }
  }

  setAudit = async (endpoint, on) => {
    try {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ endpoint, on })
      await fetchJson('/page/audit', { method: 'POST', headers, body })
      await this.load()
    } catch (error) {
      this.setState({ fault: error.message })
    }
  }

  render(_props, { list, fault, filter, mayWrite }) {
    const fits = filterRows(list ?? [], filter, textOf)
    return html`
      <div class="toolbar">
        <h2>Endpoints</h2>
        <${FilterField}
          label="Filter endpoints"
          placeholder="Filter by name, label, address, policy …"
          value=${filter}
          onFilter=${(text) => this.setState({ filter: text })}
        />
      </div>
      <p class="muted" role="status">
        ${fault ?? (list === undefined ? 'Loading …' : `${countedOf(fits.length, list.length, 'endpoint')}${fits.length > SHOWN_MAX ? `, the first ${SHOWN_MAX} are shown` : ''}`)}
      </p>
      ${list !== undefined && html`<${Table} rows=${fits.slice(0, SHOWN_MAX)} setAudit=${mayWrite ? this.setAudit : undefined} />`}
    `
  }
}

function textOf({ name, addresses, labels, policies, reason }) {
  return [name, ...addresses, ...labels, ...policies, reason].join(' ')
}

function Table({ rows, setAudit }) {
  if (rows.length === 0) return html`<p class="card">No endpoint is known.</p>`
  return html`<div class="card scroll" tabindex="0" role="region" aria-label="Endpoints">
    <table>
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col">State</th>
          <th scope="col">Policies</th>
          <th scope="col">Addresses</th>
          <th scope="col">Labels</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ id, name, addresses, labels, enforcing, audit, reason, policies }) =>
            html`<tr key=${id}>
              <th scope="row"><a href=${linkTo(name)}>${name}</a></th>
              <td>
                <${Badge} kind=${audit ? 'warn' : enforcing ? 'good' : 'bad'}>
                  ${audit ? 'audited' : enforcing ? 'enforced' : 'not enforced'}
                <//>
                ${reason !== '' && html`<div><small>${reason}</small></div>`}
                ${setAudit && html`<${AuditButton} name=${name} audit=${audit} setAudit=${setAudit} />`}
              </td>
              <td>
                ${policies.length === 0 ? 'none' : policies.map((each) => html`<div>${each}</div>`)}
              </td>
              <td>${addresses.map((address) => html`<div><code>${address}</code></div>`)}</td>
              <td>${shownLabels(labels).map((label) => html`<div><code>${label}</code></div>`)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** The smallest step of docs/break-glass.md: it allows what policy denies one endpoint, and reports it. */
function AuditButton({ name, audit, setAudit }) {
  return html`<${ConfirmButton}
    key=${String(audit)}
    words=${audit ? 'End audit' : 'Audit'}
    label=${`${audit ? 'End audit of' : 'Audit'} ${name}`}
    question=${audit ? 'End the audit that was set at run time?' : 'Allow what policy denies, and report it?'}
    onConfirm=${() => void setAudit(name, audit ? null : true)}
  />`
}
