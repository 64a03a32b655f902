import type { ComponentChildren } from 'preact'
import type { Query } from '../values/page.js'
import { Chart, type ChartProps } from './chart.js'
import { Choice } from './form.js'
import type { Span } from './history.js'
import { Card } from './marks.js'

/** Names of the ranges of charts. */
export const RANGE_TEXTS = {
  '24h': '24 h',
  '48h': '48 h',
  '7d': '7 d',
  '30d': '30 d',
  '1y': '1 y',
  all: 'All'
} as const

type HistoryCardProps = ChartProps & {
  title: string
  path: string
  query: Query
  ranges: readonly string[]
  span: Span
  children: ComponentChildren
}

/** The chart of a page, with the choice of its range. */
export function HistoryCard({ title, path, query, ranges, span, children, ...chart }: HistoryCardProps) {
  const { from, to: _to, ...others } = query
  return (
    <Card
      title={title}
      more={
        <Choice
          label="Range"
          path={path}
          query={others}
          name="range"
          values={ranges}
          current={from === undefined ? span.range : undefined}
          texts={RANGE_TEXTS}
        />
      }
    >
      <Chart {...chart} zooms />
      {children}
    </Card>
  )
}
