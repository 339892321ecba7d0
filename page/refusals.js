// Refusals as they happen. Equal refusals are one row with a count. A row has the rule that refuses, the line that would allow, and the
// answer of `explain`. The list can be paused, so that a reader can work with a row.

import {
  Badge,
  Component,
  CopyButton,
  countedOf,
  fetchJson,
  FilterField,
  filterRows,
  formatNumber,
  html,
  shownLabels,
  timeOfDay,
} from './html.js'

const SHOWN_MAX = 100

/** The reason of a packet that policy refused. The row says so in other words. */
const POLICY = 'policy'

const KINDS = {
  denied: 'query refused',
  audited: 'query, only audited',
  drop: 'packet dropped',
  audit: 'packet, only audited',
  'unknown-client': 'query of an unknown client',
  'interface-mismatch': 'query from a wrong interface',
}

export class Refusals extends Component {
  /** What is shown while the list is paused. */
  state = { held: undefined, filter: '' }

  render({ live }, { held, filter }) {
    const all = held ?? [...live.refusals.values()].reverse()
    const fits = filterRows(all, filter, textOf)
    const rows = fits.slice(0, SHOWN_MAX)
    const toggle = () => this.setState({ held: held === undefined ? all : undefined })
    return html`
      <div class="toolbar">
        <h2>Refusals</h2>
        <${FilterField}
          label="Filter refusals"
          placeholder="Filter by endpoint, name, address …"
          value=${filter}
          onFilter=${(text) => this.setState({ filter: text })}
        />
        <button type="button" aria-pressed=${held !== undefined} onClick=${toggle}>
          ${held === undefined ? 'Pause' : 'Continue'}
        </button>
        <button
          type="button"
          onClick=${() => {
            this.setState({ held: undefined })
            live.clearRefusals()
          }}
        >
          Clear
        </button>
      </div>
      <p class="muted" aria-live="polite">${this.words(all, fits, live)}</p>
      ${(live.overview?.status.faults ?? []).map(
        ({ file, line, column, message }) =>
          html`<p class="card">
            A file has a fault, so its present text is not in force:
            ${` ${file}:${line}:${column}: ${message}`}
          </p>`,
      )}
      ${all.length === 0 && html`<p class="card">No refusal to show. ${nextWords(live)}</p>`}
      <ul class="refusals">
        ${rows.map((row) => html`<${Refusal} key=${row.key} row=${row} />`)}
      </ul>
    `
  }

  words(all, fits, live) {
    const shown = fits.length > SHOWN_MAX ? `, the latest ${SHOWN_MAX} are shown` : ''
    const left = live.left > 0 ? `. ${formatNumber(live.left)} more came too fast to be listed` : ''
    const count = countedOf(fits.length, all.length, 'refusal', 'different refusals')
    return `${count}${shown}${left}`
  }
}

function nextWords({ connection }) {
  if (connection === 'lost') return 'The connection is lost, so new refusals do not appear.'
  return 'New refusals appear here at once.'
}

function textOf({ endpoint, what, types, names, kind, rules }) {
  const files = rules.map(({ policy, file }) => `${policy} ${file}`)
  return [endpoint ?? '', what, ...types, ...names, KINDS[kind] ?? kind, ...files].join(' ')
}

class Refusal extends Component {
  state = { why: undefined, isOpen: false }

  ask = async () => {
    if (this.state.isOpen) return this.setState({ isOpen: false })
    this.setState({ isOpen: true, why: undefined })
    try {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(this.props.row.question)
      this.setState({ why: await fetchJson('/page/explain', { method: 'POST', headers, body }) })
    } catch (error) {
      this.setState({ why: { fault: error.message } })
    }
  }

  render({ row }, { why, isOpen }) {
    const { verdict, kind, endpoint, what, types, names, guarded, count, time, reason, question } =
      row
    return html`<li class="card refusal">
      <div class="head">
        <${Badge} kind=${verdict === 'audit' ? 'warn' : 'bad'}>${KINDS[kind] ?? kind}<//>
        <strong class="what">${what}</strong>
        ${types.length > 0 && html`<span class="muted">${types.join(', ')}</span>`}
        <span class="muted">${endpoint ?? 'unknown client'}</span>
        ${names.length > 0 && html`<span class="muted">known as ${names.join(', ')}</span>`}
        ${names.length === 0 && guarded && html`<span class="muted">guarded, so no name opens it</span>`}
        <span class="end muted">
          ${count > 1 && html`<strong>${formatNumber(count)}×</strong>`}${' '}<time datetime=${time}
            >${timeOfDay(time)}</time
          >
        </span>
      </div>
      <${Rules} row=${row} />
      <${Allow} row=${row} />
      <div>
        ${reason !== null && reason !== POLICY && html`<span class="muted">Reason: ${reason}. </span>`}
        ${
          question !== null &&
          html`<button
            type="button"
            class="small"
            aria-expanded=${isOpen}
            aria-label=${`Why was ${what} refused?`}
            onClick=${this.ask}
          >
            Why?
          </button>`
        }
      </div>
      ${isOpen && html`<${Why} why=${why} />`}
    </li>`
  }
}

function Rules({ row: { rules, isDenyRule, allow } }) {
  // An allow-list refuses what none of its lines allows. So no line of it stands behind the refusal. The line to copy names the list, too.
  const lists = rules.filter((rule) => isAllowList(rule) && rule.file !== allow?.file)
  const others = rules.filter((rule) => !isAllowList(rule))
  return html`
    ${
      lists.length > 0 &&
      html`<p class="muted">No line of ${lists.map(({ file }) => file).join(' or ')} allows it.</p>`
    }
    ${
      others.length > 0 &&
      html`<dl class="pairs">
        <dt>${isDenyRule ? 'Denied by' : 'Default deny of'}</dt>
        <dd>
          ${others.map(
            ({ policy, file, line, text }) =>
              html`<div>
                ${text && !text.startsWith('#') && html`<code>${text}</code> `}
                <span class="muted">${policy}, ${file}:${line}</span>
              </div>`,
          )}
        </dd>
      </dl>`
    }
  `
}

function isAllowList({ file }) {
  return file.endsWith('.allow')
}

function Allow({ row: { allow, kind, remedy, isDenyRule, what } }) {
  if (isDenyRule) {
    return html`<p class="muted">
      No allow rule outweighs a deny rule. Change the deny rule to allow this.
    </p>`
  }
  if (remedy !== null) return html`<p class="muted">${remedy}.</p>`
  if (allow === null) return null
  return html`<dl class="pairs">
    <dt class="beside">Allow</dt>
    <dd>
      <div class="copy">
        <code class="block">${allow.text}</code>
        <${CopyButton} text=${allow.text} label=${`Copy the line that allows ${what}`} />
      </div>
      <span class="muted"
        >${placeWords(allow)}${(kind === 'denied' || kind === 'audited') && portWords(allow)}</span
      >
    </dd>
  </dl>`
}

function placeWords({ form, file }) {
  return form === 'policy' ? 'lines under egress of a policy' : `a line of ${file}`
}

function portWords({ form, text }) {
  const one = form === 'policy' ? 'with toPorts' : `${text}:PORT`
  return `, for every port; ${one} for one port`
}

function Why({ why }) {
  if (why === undefined) return html`<p class="why" role="status">Asking …</p>`
  if (why.fault !== undefined) return html`<p class="why" role="status">${why.fault}</p>`
  const { verdict, reason, rules, nearest, add, notes, identities, labels, selectors } = why
  const places = rules.map(
    ({ policy, file, line, action }) => `${policy}, ${file}:${line} (${action})`,
  )
  const near =
    nearest === null
      ? []
      : [`${nearest.policy}, ${nearest.file}:${nearest.line}: ${nearest.missing}`]
  const rows = [
    ['Verdict now', [verdict]],
    ['Reason', [reason]],
    ['Rules', places],
    ['Nearest rule', near],
    ['Remedy', add ? [`add the line ${add.text} to ${add.file}`] : []],
    ['Identities', identities.map(String)],
    ['Labels', shownLabels(labels)],
    ['Selectors', selectors],
    ['Default', [defaultWords(why.default)]],
    ['Notes', notes],
  ]
  return html`<div class="why" role="status">
    <dl class="pairs">
      ${rows
        .filter(([, values]) => values.length > 0)
        .map(
          ([name, values]) =>
            html`<dt>${name}</dt>
              <dd>${values.map((value) => html`<div>${value}</div>`)}</dd>`,
        )}
    </dl>
  </div>`
}

function defaultWords({ egress, policies }) {
  const names = policies.map((name) => `"${name}"`).join(', ')
  if (policies.length === 0) return egress
  return `${egress}, turned on by the ${policies.length === 1 ? 'policy' : 'policies'} ${names}`
}
