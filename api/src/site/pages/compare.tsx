import type { Calendar } from '@gamenet/schemas'
import { z } from 'zod'
import { oneOf, text, texts, timeZone } from '../../request/parameters.js'
import { calendar } from '../../routes/calendar.js'
import { Chart } from '../components/chart.js'
import { Choice, Field, Form, Toggle } from '../components/form.js'
import { daysAgo, RANGE_DAYS } from '../components/history.js'
import { RANGE_TEXTS } from '../components/history-card.js'
import { Csv, GameLink, InZone, N, Name, Time } from '../components/marks.js'
import { type Point, type Series, withGaps } from '../components/series.js'
import { type Column, FeedCard, TableCard } from '../components/table.js'
import { DAY_MS, dayText, groupedBy, monthText, msOf, withQuery } from '../components/text.js'
import { ask, type Part, page, type Query } from '../values/page.js'

const GAMES_MAX = 8
const YEARS_MAX = 4
const ROWS = 60
const RANGES = ['30d', '1y', 'all'] as const
const FORMS = ['absolute', 'share', 'index'] as const
const EVERY = ['day', 'week', 'month'] as const
const PERIOD_MS = { day: DAY_MS, week: 7 * DAY_MS, month: 30.5 * DAY_MS } as const

const compareInput = z.object({
  games: texts({ max: GAMES_MAX, example: '4d5307e6,Halo 2' }).optional(),
  add: text({ example: 'Halo 2', max: 100 }).optional(),
  every: oneOf(EVERY).optional(),
  range: oneOf(RANGES).default('30d'),
  as: oneOf(FORMS).default('absolute'),
  overlay: oneOf(['year']).optional(),
  tz: timeZone().default('UTC')
})
type CompareInput = z.infer<typeof compareInput>

/** `/compare`: games beside each other, or the years of one. */
export const comparePage = page({
  name: 'page-compare',
  path: '/compare',
  input: compareInput,
  parts: (input: CompareInput, { nowMs }): { periods?: Part<Calendar> } => {
    const games = gamesOf(input)
    if (games.length === 0) return {}
    const days = RANGE_DAYS[input.range]
    const isAll = input.overlay === 'year' || days === undefined
    const from = isAll ? undefined : daysAgo(nowMs, days)
    return {
      periods: ask<Calendar>(calendar, { titleIds: games.join(','), every: everyOf(input), tz: input.tz, from })
    }
  },
  view: ({ periods = [] }, input, { query }) => {
    const byTitle = groupedBy(periods, ({ titleId }) => titleId ?? '')
    const names = [...byTitle.values()].map(([first]) => first?.name ?? '')
    const games = [...byTitle.keys()].join(',')
    const chosen = { ...query, games, add: undefined }
    return {
      title: names.length === 0 ? 'Compare games' : names.length === 1 ? `${names[0]} over time` : names.join(' and '),
      description: 'Players of up to eight games beside each other, by day, week or month.',
      canonical: withQuery('/compare', { games }),
      isUnlisted: true,
      section: '/compare',
      hasChart: periods.length > 0,
      content: (
        <>
          <h1>Compare {names.length === 0 ? 'games' : <Name>{names.join(' and ')}</Name>}</h1>
          <div class="row">
            <Form action="/compare" submit="Add" hidden={{ ...chosen, games: games || query.games }}>
              <Field name="add" label="Add a game by name or id" required />
            </Form>
            <a href="/compare/players">Compare players</a>
          </div>
          {periods.length === 0 ? (
            <p>Choose games here, or by “+ Compare” at each game.</p>
          ) : (
            <Compared byTitle={byTitle} names={names} input={input} query={chosen} />
          )}
        </>
      )
    }
  }
})

type ComparedProps = {
  byTitle: ReadonlyMap<string, Calendar>
  names: readonly string[]
  input: CompareInput
  query: Query
}

function Compared({ byTitle, names, input, query }: ComparedProps) {
  const series = input.overlay === 'year' ? yearsOf([...byTitle.values()].flat(), input) : seriesOf(byTitle, input)
  const instants = series.flatMap(({ points }) => points.map(([ms]) => ms))
  const span = { fromMs: Math.min(...instants), toMs: Math.max(...instants) }
  const every = everyOf(input)
  const csv = { titleIds: query.games, every, tz: input.tz, format: 'csv' }
  return (
    <>
      <Chosen byTitle={byTitle} input={input} query={query} />
      <section class="card">
        <Chart
          lines={series.map((each) => ({ series: each, ...span }))}
          label={`${unitOf(input)} of ${names.join(', ')}`}
        />
        <p class="quiet">
          {unitOf(input)}. Days and hours in {input.tz}. <InZone path="/compare" />{' '}
          <Csv href={withQuery('/api/calendar', csv)} />
        </p>
      </section>
      <PeriodTable byTitle={byTitle} names={names} every={every} />
      <FeedCard
        title="Best of each"
        rows={[...byTitle.values()].map((periods) => periods.reduce((a, b) => (b.peak > a.peak ? b : a)))}
        row={({ titleId, name, peak, peakAt }) => (
          <>
            <GameLink titleId={titleId} name={name} />: <N of={peak} /> on <Time at={peakAt} />
          </>
        )}
      />
    </>
  )
}

function gamesOf({ games = [], add }: CompareInput): string[] {
  return [...games, ...(add === undefined ? [] : [add.replaceAll(',', ' ')])].slice(0, GAMES_MAX)
}

function everyOf({ every, range, overlay }: CompareInput): (typeof EVERY)[number] {
  return every ?? (overlay === 'year' || range === 'all' ? 'week' : 'day')
}

function unitOf({ as, ...input }: CompareInput): string {
  const of = `of each ${everyOf({ as, ...input })}`
  if (as === 'share') return `Share of the network in percent, mean ${of}`
  return as === 'index' ? `Mean ${of}, first = 100` : `Mean ${of}`
}

function seriesOf(byTitle: ReadonlyMap<string, Calendar>, input: CompareInput): Series[] {
  const widthMs = PERIOD_MS[everyOf(input)]
  return [...byTitle.values()].map((periods) => {
    const base = periods.find(({ average }) => average > 0)?.average ?? 1
    const valueAt = ({ average, share }: Calendar[number]) =>
      input.as === 'share' ? (share ?? 0) * 100 : input.as === 'index' ? (average / base) * 100 : average
    return {
      name: periods[0]?.name ?? '',
      points: withGaps(
        periods.map((period) => [msOf(period.date), Math.round(valueAt(period) * 10) / 10] as const),
        widthMs
      )
    }
  })
}

/** Up to four years of one game on the axis of the last one. */
function yearsOf(periods: Calendar, input: CompareInput): Series[] {
  const of = [...groupedBy(periods, ({ date }) => date.slice(0, 4))].slice(-YEARS_MAX).reverse()
  const latest = Number(of[0]?.[0] ?? 0)
  return of.map(([year, rows], index): Series => {
    const points: Point[] = withGaps(
      rows.map(
        ({ date, average }) => [msOf(date.replace(year, String(latest)).replace('02-29', '02-28')), average] as const
      ),
      PERIOD_MS[everyOf(input)]
    )
    return { name: year, points, isDotted: index > 0 }
  })
}

function Chosen({ byTitle, input, query }: Omit<ComparedProps, 'names'>) {
  const ids = [...byTitle.keys()]
  return (
    <div class="row">
      {[...byTitle].map(([id, [first]]) => (
        <span key={id}>
          <GameLink titleId={id} name={first?.name ?? id} />{' '}
          <a
            href={withQuery('/compare', { ...query, games: ids.filter((each) => each !== id).join(',') })}
            rel="nofollow"
            aria-label={`Remove ${first?.name}`}
          >
            ✕
          </a>
        </span>
      ))}
      <Choice
        {...{ label: 'Range', path: '/compare', query, name: 'range', values: RANGES, texts: RANGE_TEXTS }}
        current={input.range}
      />
      <Choice
        {...{ label: 'Period', path: '/compare', query, name: 'every', values: ['', ...EVERY], texts: { '': 'auto' } }}
        current={input.every ?? ''}
      />
      <Choice {...{ label: 'Values', path: '/compare', query, name: 'as', values: FORMS }} current={input.as} />
      {ids.length > 1 ? null : (
        <Toggle path="/compare" query={query} name="overlay" value="year">
          Years over each other
        </Toggle>
      )}
    </div>
  )
}

type PeriodTableProps = {
  byTitle: ReadonlyMap<string, Calendar>
  names: readonly string[]
  every: (typeof EVERY)[number]
}

function PeriodTable({ byTitle, names, every }: PeriodTableProps) {
  const at = [...byTitle.values()].map((periods) => new Map(periods.map((period) => [period.date, period])))
  const dates = [...new Set(at.flatMap((periods) => [...periods.keys()]))].sort().reverse()
  const bestOf = (date: string) => Math.max(...at.map((periods) => periods.get(date)?.average ?? -1))
  const columnsOf = (index: number): Column<string>[] => [
    [
      `#${names[index]}`,
      (date) => {
        const average = at[index]?.get(date)?.average
        if (average === undefined) return ''
        return (
          <span class={at.length > 1 && average === bestOf(date) ? 'best' : undefined}>
            <N of={average} />
          </span>
        )
      }
    ],
    [
      '#peak',
      (date) => {
        const peak = at[index]?.get(date)?.peak
        return peak === undefined ? '' : <N of={peak} />
      }
    ]
  ]
  return (
    <TableCard
      title={`Mean and peak of each ${every}`}
      rows={dates}
      most={ROWS}
      columns={[
        [every, (date) => (every === 'month' ? monthText(date) : dayText(date))],
        ...names.flatMap((_, index) => columnsOf(index))
      ]}
    />
  )
}
