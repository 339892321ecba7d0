// Gives the other modules `html` (preact with htm), and small parts that several views use. Text becomes text nodes only, so no value of
// the daemon is ever read as HTML.

import { Component, h, render } from './lib/preact.js'
import htm from './lib/htm.js'

export { Component, render }
export const html = htm.bind(h)

const NUMBERS = new Intl.NumberFormat('en')

export function formatNumber(value) {
  return NUMBERS.format(value)
}

/** 1 `one`, or several `many`. */
export function counted(count, one, many = `${one}s`) {
  return `${formatNumber(count)} ${count === 1 ? one : many}`
}

/** What a filtered list says above itself: `3 endpoints`, or with a filter `1 of 3 endpoints`. */
export function countedOf(shown, all, one, many) {
  return shown === all
    ? counted(all, one, many)
    : `${formatNumber(shown)} of ${counted(all, one, many)}`
}

/** Every endpoint of a host without a cluster has this label, so it says nothing. */
const DEFAULT_CLUSTER = 'k8s:io.cilium.k8s.policy.cluster=default'

/** The labels that people read. */
export function shownLabels(labels) {
  return labels.filter((label) => label !== DEFAULT_CLUSTER)
}

/** A rate per second, with at most one decimal. */
export function formatRate(value) {
  return value === undefined ? '–' : NUMBERS.format(Math.round(value * 10) / 10)
}

/** Seconds as a time that people read: 0.00042 -> 0.42 ms. */
export function formatSeconds(seconds) {
  if (seconds < 0.001) return `${trim(seconds * 1e6)} µs`
  if (seconds < 1) return `${trim(seconds * 1e3)} ms`
  return `${trim(seconds)} s`
}

function trim(value) {
  return String(Number(value.toPrecision(2)))
}

/** The local time of day of an RFC 3339 time, or of milliseconds since 1970. */
export function timeOfDay(time) {
  return new Date(time).toLocaleTimeString([], { hour12: false })
}

/** A word with a colour. The word says the same as the colour. */
export function Badge({ kind, children }) {
  return html`<span class="badge ${kind}">${children}</span>`
}

/** A field that filters a list with every letter. */
export function FilterField({ label, placeholder, value, onFilter }) {
  return html`<label class="grow">
    <span class="hidden">${label}</span>
    <input
      type="search"
      placeholder=${placeholder}
      value=${value}
      onInput=${(event) => onFilter(event.target.value)}
    />
  </label>`
}

/** The rows whose text contains what a filter says, in any case of letters. */
export function filterRows(rows, filter, textOf) {
  const wanted = filter.trim().toLowerCase()
  return wanted === '' ? rows : rows.filter((row) => textOf(row).toLowerCase().includes(wanted))
}

/** A button whose action needs a second one. The keyboard continues at the answer that changes nothing. */
export class ConfirmButton extends Component {
  state = { isAsking: false }

  ask = (isAsking) => {
    this.setState({ isAsking }, () => this.base?.querySelector('button')?.focus())
  }

  render({ label, words, question, onConfirm }, { isAsking }) {
    if (!isAsking) {
      return html`<div>
        <button type="button" class="small" aria-label=${label} onClick=${() => this.ask(true)}>
          ${words}
        </button>
      </div>`
    }
    const confirm = () => {
      this.ask(false)
      onConfirm()
    }
    return html`<div role="group" aria-label=${question}>
      <small>${question}</small>${' '}
      <button type="button" class="small" onClick=${() => this.ask(false)}>Cancel</button>${' '}
      <button type="button" class="small" onClick=${confirm}>Yes</button>
    </div>`
  }
}

/** Copies a text, and says so to people who see and to screen readers. */
export class CopyButton extends Component {
  copy = async () => {
    try {
      await navigator.clipboard.writeText(this.props.text)
      this.say('Copied')
    } catch {
      // Without a secure context there is no clipboard. The text is selected, so that the keyboard can copy it.
      const code = this.base?.parentElement?.querySelector('code')
      if (code) getSelection()?.selectAllChildren(code)
      this.say('Selected')
    }
  }

  say(word) {
    this.setState({ word })
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.setState({ word: undefined }), 2000)
  }

  componentWillUnmount() {
    clearTimeout(this.timer)
  }

  render({ label }, { word }) {
    return html`<button type="button" class="small" aria-label=${label} onClick=${this.copy}>
      <span aria-live="polite">${word ?? 'Copy'}</span>
    </button>`
  }
}

/** Reads JSON of the daemon. Throws an Error with the daemon's reason. */
export async function fetchJson(path, options) {
  const response = await fetch(path, options)
  if (response.status === 401) location.reload()
  const text = await response.text()
  let body
  try {
    body = JSON.parse(text)
  } catch {
    throw new Error(`the daemon answered ${response.status}`)
  }
  if (!response.ok)
    throw new Error(body.error ?? body.detail ?? `the daemon answered ${response.status}`)
  return body
}
