// The overview: whether the daemon is healthy and ready and why not, rates, hold times, servers, and limits.

import { Badge, counted, formatNumber, formatSeconds, html, timeOfDay } from './html.js'
import { parseSeries } from './live.js'
import { RateChart } from './rates.js'

const starts = (name, label, values) => {
  const wanted = values.map((value) => `${name}{${label}="${value}"}`)
  return (series) => wanted.includes(series)
}
const QUERIES = 'dns_queries_total'
const isOtherQuery = (series) =>
  series.startsWith(`${QUERIES}{`) && !/"(?:allowed|denied)"/.test(series)

const QUERY_LINES = [
  { label: 'allowed', colour: 'good', fits: starts(QUERIES, 'verdict', ['allowed']) },
  { label: 'denied', colour: 'bad', dash: [6, 3], fits: starts(QUERIES, 'verdict', ['denied']) },
  { label: 'other', colour: 'other', dash: [2, 3], fits: isOtherQuery },
]
const ANSWERS = 'dns_answers_total'
const ANSWER_LINES = [
  { label: 'exact', colour: 'good', fits: starts(ANSWERS, 'outcome', ['exact']) },
  {
    label: 'degraded',
    colour: 'warn',
    dash: [8, 3],
    fits: starts(ANSWERS, 'outcome', ['degraded']),
  },
  {
    label: 'held out',
    colour: 'bad',
    dash: [6, 3],
    fits: starts(ANSWERS, 'outcome', ['held_out']),
  },
  {
    label: 'no answer',
    colour: 'other',
    dash: [2, 3],
    fits: (series) => series.startsWith('dns_failures_total'),
  },
]

export function Overview({ live }) {
  const { overview } = live
  if (overview === undefined) return html`<p class="card">Waiting for the daemon …</p>`
  const { status, samples } = overview
  return html`
    <h2 class="hidden">Overview</h2>
    <${live.connection === 'live' ? Health : NoHealth} status=${status} live=${live} />
    <${Tiles} status=${status} samples=${samples} />
    <div class="two">
      <${RateChart} title="Queries per second" live=${live} lines=${QUERY_LINES} />
      <${RateChart} title="Answers per second" live=${live} lines=${ANSWER_LINES} />
    </div>
    <div class="two">
      <${Holds} samples=${samples} />
      <${Upstreams} list=${status.upstreams} />
    </div>
    <${Limits} list=${status.limits} />
  `
}

/** Stands in the place of the health while there is no connection. */
function NoHealth({ live }) {
  return html`<section class="card health none">
    <h3>Health unknown: no connection to the daemon</h3>
    <p>This page shows the state of ${timeOfDay(1000 * live.history.at(-1).time)}.</p>
  </section>`
}

function Health({ status }) {
  const { health, ready, notReady, faults, warnings } = status
  const reasons = [
    ...notReady.map((text) => ['bad', 'not ready', text]),
    ...faults.map(({ file, line, column, message }) => [
      'bad',
      'fault',
      `${file}:${line}:${column}: ${message}`,
    ]),
    ...warnings.map((text) => ['warn', 'warning', text]),
  ]
  const state = health === 'ok' && ready ? 'good' : 'bad'
  return html`<section class="card health ${state}">
    <h3>
      ${health === 'ok' ? 'Healthy' : 'Degraded'}, ${ready ? 'ready' : 'not ready'},
      ${' '}${enforcementOf(status)}
    </h3>
    ${
      reasons.length === 0
        ? html`<p>Nothing is wrong.</p>`
        : html`<ul class="reasons">
            ${reasons.map(
              ([kind, word, text]) => html`<li><${Badge} kind=${kind}>${word}<//> ${text}</li>`,
            )}
          </ul>`
    }
  </section>`
}

function enforcementOf({ mode, datapath }) {
  if (mode !== 'enforce') return `policy is not enforced: the mode is ${mode}`
  if (datapath.kind === 'memory') return 'packets pass: the datapath memory enforces nothing'
  return 'policy is enforced'
}

function Tiles({ status, samples }) {
  const { datapath, endpoints, policies } = status
  const tiles = [
    [
      'Datapath',
      datapath.kind,
      datapath.refused > 0
        ? `${counted(datapath.refused, 'entry', 'entries')} refused`
        : `revision ${datapath.revision}`,
    ],
    ['Endpoints enforced', `${endpoints.enforcing} of ${endpoints.known}`, ''],
    ['Policies', formatNumber(policies), `revision ${status.realizedRevision}`],
    [
      'Names learned',
      formatNumber(samples.names ?? 0),
      `${counted(samples.ipcache_prefixes ?? 0, 'prefix', 'prefixes')} in all: of names, rules and this host`,
    ],
    [
      'Queries in flight',
      formatNumber(samples.upstream_queries_in_flight ?? 0),
      `${counted(datapath.held, 'answer')} held`,
    ],
  ]
  return html`<dl class="tiles">
    ${tiles.map(
      ([name, value, more]) =>
        html`<div class="card">
          <dt>${name}</dt>
          <dd>
            <strong>${value}</strong>
            <small>${more}</small>
          </dd>
        </div>`,
    )}
  </dl>`
}

/** Buckets by stage, from the histogram of hold times. */
export function holdsOf(samples) {
  const stages = new Map()
  const add = (stage, bound, count) => {
    const buckets = stages.get(stage) ?? []
    buckets.push({ bound: bound === '+Inf' ? Infinity : Number(bound), count })
    stages.set(stage, buckets)
  }
  for (const [series, value] of Object.entries(samples)) {
    const { name, labels } = parseSeries(series)
    if (name === 'dns_hold_seconds_bucket') add(labels.stage ?? 'held', labels.le, value)
  }
  for (const buckets of stages.values()) {
    buckets.sort((a, b) => a.bound - b.bound)
    for (let i = buckets.length - 1; i > 0; i--) buckets[i].count -= buckets[i - 1].count
  }
  return stages
}

function Holds({ samples }) {
  const stages = [...holdsOf(samples)].map(([stage, all]) => {
    const buckets = all.filter(({ count }) => count > 0)
    const total = buckets.reduce((sum, { count }) => sum + count, 0)
    return { stage, buckets, total, most: Math.max(...buckets.map(({ count }) => count)) }
  })
  const used = stages.filter(({ total }) => total > 0)
  return html`<section class="card">
    <h3>Hold time by stage</h3>
    <p class="muted">
      How long the queries and answers that had to wait were held, since the start of the daemon
    </p>
    ${used.length === 0 && html`<p>None had to wait: the kernel confirms most answers at once.</p>`}
    ${used.map(
      ({ stage, buckets, total, most }) =>
        html`<table class="bars">
          <caption>
            ${stage}: ${formatNumber(total)} held
          </caption>
          <thead class="hidden">
            <tr>
              <th scope="col">At most</th>
              <th scope="col">Share</th>
              <th scope="col">Count</th>
            </tr>
          </thead>
          <tbody>
            ${buckets.map(
              ({ bound, count }) =>
                html`<tr>
                  <th scope="row">
                    ${bound === Infinity ? 'longer' : `≤ ${formatSeconds(bound)}`}
                  </th>
                  <td>
                    <meter
                      min="0"
                      max=${most}
                      value=${count}
                      aria-label=${`${count} of ${total}`}
                    ></meter>
                  </td>
                  <td class="number">${formatNumber(count)}</td>
                </tr>`,
            )}
          </tbody>
        </table>`,
    )}
  </section>`
}

const STATES = { up: 'good', failing: 'warn', down: 'bad' }

function Upstreams({ list }) {
  return html`<section class="card">
    <h3>Servers</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Servers">
      <table>
        <thead>
          <tr>
            <th scope="col">Server</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Round trip</th>
            <th scope="col" class="number">Failures</th>
          </tr>
        </thead>
        <tbody>
          ${list.map(
            ({ address, state, first, rttMs, failures }) =>
              html`<tr key=${address}>
                <th scope="row">
                  <code>${address}</code>${first && html` <small>asked first</small>`}
                </th>
                <td><${Badge} kind=${STATES[state]}>${state}<//></td>
                <td class="number">${rttMs === null ? '–' : formatSeconds(rttMs / 1000)}</td>
                <td class="number">${formatNumber(failures)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}

function Limits({ list }) {
  return html`<section class="card">
    <h3>Limits near exhaustion</h3>
    ${
      list.length === 0
        ? html`<p>Every limit has room, and none was hit since the start.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Limits">
            <table>
              <thead>
                <tr>
                  <th scope="col">Limit</th>
                  <th scope="col">Use</th>
                  <th scope="col" class="number">Bound</th>
                  <th scope="col" class="number">Hits</th>
                </tr>
              </thead>
              <tbody>
                ${list.map(
                  ({ limit, use, bound, hits }) =>
                    html`<tr key=${limit}>
                      <th scope="row"><code>${limit}</code></th>
                      <td>
                        ${
                          use === null
                            ? 'not known'
                            : html`<meter
                                  min="0"
                                  max=${bound}
                                  value=${use}
                                  aria-label=${`${limit} in use`}
                                ></meter>
                                ${' '}${formatNumber(use)} (${Math.round((100 * use) / bound)} %)`
                        }
                      </td>
                      <td class="number">${formatNumber(bound)}</td>
                      <td class="number">${formatNumber(hits)}</td>
                    </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
  </section>`
}
