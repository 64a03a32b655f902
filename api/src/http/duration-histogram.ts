import { Histogram } from 'prom-client'

type Labels = { readonly route: string; readonly method: string; readonly status: number }
type Child = { readonly labels: Labels; readonly counts: number[]; sum: number }

const NAME = 'gamenet_http_request_duration_seconds'
const HELP = 'Time from a request until its answer is handed to the socket; 0 for a ready answer.'
const BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * The durations of requests. Counts in arrays and names the labels when it is read: an observation of a plain
 * `Histogram`, and of a `Counter` next to it, takes 2.5 µs, an eighth of a ready answer.
 */
export class DurationHistogram extends Histogram<keyof Labels> {
  readonly #children: Child[] = []

  constructor() {
    super({ name: NAME, help: HELP, registers: [] })
  }

  /** Returns a function that observes durations with these labels. Called once for each combination. */
  observer(labels: Labels): (seconds: number) => void {
    const child: Child = { labels, counts: BOUNDS.map(() => 0).concat(0), sum: 0 }
    this.#children.push(child)
    return (seconds) => {
      let n = 0
      while (n < BOUNDS.length && seconds > (BOUNDS[n] ?? 0)) n += 1
      child.counts[n] = (child.counts[n] ?? 0) + 1
      child.sum += seconds
    }
  }

  /** What the registry prints; overrides a method that the types of `Histogram` lack. */
  async getForPromString() {
    return { name: NAME, help: HELP, type: 'histogram', aggregator: 'sum', values: this.#children.flatMap(valuesOf) }
  }
}

function valuesOf({ labels: sharedLabels, counts, sum }: Child) {
  let count = 0
  const buckets = counts.map((more, n) => {
    count += more
    return { metricName: `${NAME}_bucket`, labels: { le: BOUNDS[n] ?? '+Inf' }, sharedLabels, value: count }
  })
  return [
    ...buckets,
    { metricName: `${NAME}_sum`, labels: {}, sharedLabels, value: sum },
    { metricName: `${NAME}_count`, labels: {}, sharedLabels, value: count }
  ]
}
