// Draws rates per second as lines (uPlot). The chart is drawn again in the colours of the page when these change. Beside the chart stands
// a legend with the present values, which says the same in words.

import { Component, formatRate, html } from './html.js'
import uPlot from './lib/uplot.js'

const HEIGHT = 170
/** Seconds between two times of the axis. A time is written to the second, so with less than a second times would repeat. */
const INCREMENTS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600]

export class RateChart extends Component {
  #plot
  #observer
  #scheme = matchMedia('(prefers-color-scheme: dark)')

  componentDidMount() {
    this.#observer = new ResizeObserver(() => this.#resize())
    this.#observer.observe(this.box)
    this.#scheme.addEventListener('change', this.#redraw)
    this.#redraw()
  }

  componentWillUnmount() {
    this.#observer.disconnect()
    this.#scheme.removeEventListener('change', this.#redraw)
    this.#plot?.destroy()
  }

  componentDidUpdate() {
    this.#plot?.setData(this.#data())
  }

  #redraw = () => {
    this.#plot?.destroy()
    const style = getComputedStyle(document.documentElement)
    const colour = (name) => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: colour('muted'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { stroke: colour('line'), width: 1 },
      font: '12px system-ui, sans-serif',
    }
    this.#plot = new uPlot(
      {
        width: Math.max(this.box.clientWidth, 100),
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
        axes: [
          {
            ...axis,
            // Without a point the axis has no time to show.
            values: ({ data: [points] }, times) =>
              times.map((time) => (points.length === 0 ? '' : clock(time))),
            incrs: INCREMENTS,
            space: 90,
            size: 32,
          },
          { ...axis, size: 48, space: 36 },
        ],
        series: [
          {},
          ...this.props.lines.map(({ colour: name, dash }) => ({
            stroke: colour(name),
            width: 2,
            dash,
            points: { show: false },
          })),
        ],
      },
      this.#data(),
      this.box,
    )
  }

  #resize() {
    this.#plot?.setSize({ width: Math.max(this.box.clientWidth, 100), height: HEIGHT })
  }

  /** One list of times and one list of rates for each line. A point is the rate over the five samples before it. */
  #data() {
    const { live, lines } = this.props
    const { history } = live
    const points = history.map((_, i) => [history[i], history[Math.max(0, i - 5)]]).slice(1)
    return [
      points.map(([newer]) => newer.time),
      ...lines.map(({ fits }) =>
        points.map(([newer, older]) => live.rate(newer, older, fits) ?? null),
      ),
    ]
  }

  render({ title, live, lines }) {
    const { history } = live
    const [newer, older] = [history.at(-1), history.at(-6) ?? history[0]]
    const now = lines.map(({ fits }) => live.rate(newer, older, fits))
    const words = lines.map(({ label }, i) => `${label} ${formatRate(now[i])}`).join(', ')
    return html`<section class="card">
      <h3>${title}</h3>
      <ul class="legend">
        ${lines.map(
          ({ label, colour }, i) =>
            html`<li>
              <span class="line ${colour}" aria-hidden="true"></span>${label}${' '}
              <strong>${formatRate(now[i])}</strong>
            </li>`,
        )}
      </ul>
      <div
        class="chart"
        role="img"
        aria-label=${`${title} now: ${words}`}
        ref=${(box) => {
          if (box) this.box = box
        }}
      ></div>
    </section>`
  }
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false })
}
