import type { Calendar, PlayerComparison } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, oneOf, text, texts, timeZone } from '../../request/parameters.js'
import { calendar } from '../../routes/calendar.js'
import { playerComparison } from '../../routes/player-comparison.js'
import { Chart } from '../components/chart.js'
import { daysAgo, RANGE_DAYS, RANGE_TEXTS } from '../components/history.js'
import { Card, Choice, GameLink, N, Name, Pager, PlayerLink, Table, Time } from '../components/marks.js'
import { pageOf } from '../components/page-number.js'
import { BoardLink, gapText, measureText } from '../components/records.js'
import { type Point, type Series, withGaps } from '../components/series.js'
import { count, DAY_MS, dayText, groupedBy, monthText, msOf, plural, withQuery } from '../components/text.js'
import { ask, type Part, page, tryAsk } from '../values/page.js'

const GAMES_MAX = 8
const YEARS_MAX = 4
const ROWS = 60
const BOARDS = 100
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
  view: ({ periods = [] }, input) => {
    const byTitle = groupedBy(periods, ({ titleId }) => titleId ?? '')
    const names = [...byTitle.values()].map(([first]) => first?.name ?? '')
    const ids = [...byTitle.keys()]
    const of = input.overlay === 'year' ? yearsOf(periods, input) : seriesOf(byTitle, input)
    const instants = of.flatMap(({ points }) => points.map(([ms]) => ms))
    const query = queryOf(input)
    return {
      title: names.length === 0 ? 'Compare games' : names.length === 1 ? `${names[0]} over time` : names.join(' and '),
      description: 'Players of up to eight games beside each other, by day, week or month.',
      canonical: withQuery('/compare', { games: ids.join(',') }),
      isUnlisted: true,
      section: '/compare',
      hasChart: instants.length > 0,
      content: (
        <>
          <h1>Compare {names.length === 0 ? 'games' : <Name>{names.join(' and ')}</Name>}</h1>
          <form action="/compare" class="row">
            {Object.entries({ ...query, games: ids.join(',') || query.games, add: undefined }).map(([name, value]) =>
              value === undefined ? null : <input key={name} type="hidden" name={name} value={value} />
            )}
            <input
              name="add"
              placeholder="Add a game by name or id"
              aria-label="Game to add"
              maxlength={100}
              required
            />
            <button type="submit">Add</button>
            <a href="/compare/players">Compare players</a>
          </form>
          {names.length === 0 ? (
            <p>Choose games here, or by “+ Compare” at each game.</p>
          ) : (
            <Chosen ids={ids} names={names} input={input} />
          )}
          {instants.length === 0 ? null : (
            <>
              <section class="card">
                <Chart
                  series={of}
                  fromMs={Math.min(...instants)}
                  toMs={Math.max(...instants)}
                  label={`${unitOf(input)} of ${names.join(', ')}`}
                />
                <p class="quiet">
                  {unitOf(input)}. Days and hours in {input.tz}.{' '}
                  <a class="in-zone" href="/compare" rel="nofollow" hidden>
                    In my zone
                  </a>{' '}
                  <a
                    href={withQuery('/api/calendar', {
                      titleIds: ids.join(','),
                      every: everyOf(input),
                      tz: input.tz,
                      format: 'csv'
                    })}
                    rel="nofollow"
                  >
                    CSV
                  </a>
                </p>
              </section>
              <PeriodTable byTitle={byTitle} names={names} every={everyOf(input)} />
              <Best byTitle={byTitle} />
            </>
          )}
        </>
      )
    }
  }
})

function gamesOf({ games = [], add }: CompareInput): string[] {
  return [...games, ...(add === undefined ? [] : [add.replaceAll(',', ' ')])].slice(0, GAMES_MAX)
}

function everyOf({ every, range, overlay }: CompareInput): (typeof EVERY)[number] {
  return every ?? (overlay === 'year' || range === 'all' ? 'week' : 'day')
}

function queryOf(input: CompareInput) {
  const games = gamesOf(input)
  return {
    games: games.length === 0 ? undefined : games.join(','),
    every: input.every,
    range: input.range === '30d' ? undefined : input.range,
    as: input.as === 'absolute' ? undefined : input.as,
    overlay: input.overlay,
    tz: input.tz === 'UTC' ? undefined : input.tz
  }
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

function Chosen({ ids, names, input }: { ids: readonly string[]; names: readonly string[]; input: CompareInput }) {
  const query = { ...queryOf(input), games: ids.join(',') }
  const choice = <Value extends string>(
    name: string,
    values: readonly Value[],
    current: string,
    usual: string,
    texts: Readonly<Record<string, string>> = {}
  ) =>
    values.map((value) => ({
      text: texts[value] ?? value,
      href: withQuery('/compare', { ...query, [name]: value === usual ? undefined : value }),
      isCurrent: value === current
    }))
  return (
    <div class="row">
      <ul class="plain row">
        {ids.map((id, index) => (
          <li key={id}>
            <GameLink titleId={id} name={names[index] ?? id} />{' '}
            <a
              href={withQuery('/compare', { ...query, games: ids.filter((each) => each !== id).join(',') })}
              rel="nofollow"
              aria-label={`Remove ${names[index]}`}
            >
              ✕
            </a>
          </li>
        ))}
      </ul>
      <Choice label="Range" options={choice('range', RANGES, input.range, '30d', RANGE_TEXTS)} />
      <Choice label="Period" options={choice('every', EVERY, everyOf(input), '')} />
      <Choice label="Values" options={choice('as', FORMS, input.as, 'absolute')} />
      {ids.length === 1 ? (
        <a
          href={withQuery('/compare', { ...query, overlay: input.overlay === 'year' ? undefined : 'year' })}
          rel="nofollow"
          aria-current={input.overlay === 'year' ? 'true' : undefined}
        >
          Years over each other
        </a>
      ) : null}
    </div>
  )
}

type PeriodTableProps = {
  byTitle: ReadonlyMap<string, Calendar>
  names: readonly string[]
  every: (typeof EVERY)[number]
}

function PeriodTable({ byTitle, names, every }: PeriodTableProps) {
  const rows = [...byTitle.values()]
  const dates = [...new Set(rows.flatMap((periods) => periods.map(({ date }) => date)))].sort().reverse()
  const at = rows.map((periods) => new Map(periods.map((period) => [period.date, period])))
  return (
    <Card title={`Mean and peak of each ${every}`}>
      <Table label="Periods" head={[every, ...names.flatMap((name) => [`#${name}`, '#peak'])]}>
        {dates.slice(0, ROWS).map((date) => {
          const best = Math.max(...at.map((periods) => periods.get(date)?.average ?? -1))
          return (
            <tr key={date}>
              <th scope="row">{every === 'month' ? monthText(date) : dayText(date)}</th>
              {at.map((periods, index) => {
                const period = periods.get(date)
                const isBest = at.length > 1 && period?.average === best
                return [
                  <td key={`${index}a`} class={isBest ? 'number best' : 'number'}>
                    {period === undefined ? '' : <N of={period.average} />}
                  </td>,
                  <td key={`${index}p`} class="number quiet">
                    {period === undefined ? '' : <N of={period.peak} />}
                  </td>
                ]
              })}
            </tr>
          )
        })}
      </Table>
      {dates.length > ROWS ? (
        <p class="quiet">
          The newest {ROWS} of {count(dates.length)}.
        </p>
      ) : null}
    </Card>
  )
}

function Best({ byTitle }: { byTitle: ReadonlyMap<string, Calendar> }) {
  return (
    <Card title="Best of each">
      <ul class="plain">
        {[...byTitle].map(([id, periods]) => {
          const best = periods.reduce((a, b) => (b.peak > a.peak ? b : a))
          return (
            <li key={id}>
              <GameLink titleId={id} name={best.name} />: <N of={best.peak} /> on <Time at={best.peakAt} />
            </li>
          )
        })}
      </ul>
    </Card>
  )
}

const playersInput = z.object({
  names: text({ example: 'ann,bob', max: 500 }).optional(),
  with: text({ example: 'bob', max: 100 }).optional(),
  page: integer({ min: 1, max: 100 }).default(1)
})
type PlayersInput = z.infer<typeof playersInput>

/** `/compare/players`: the boards that players share. */
export const comparePlayersPage = page({
  name: 'page-compare-players',
  path: '/compare/players',
  input: playersInput,
  parts: ({ names, with: other, page: number }: PlayersInput): { compared?: Part<PlayerComparison | undefined> } => {
    const all = namesOf({ names, with: other })
    if (all.length < 2) return {}
    return {
      compared: tryAsk<PlayerComparison>(playerComparison, {
        names: all.join(','),
        limit: BOARDS,
        offset: (number - 1) * BOARDS
      })
    }
  },
  view: ({ compared }, input) => {
    const names = namesOf(input)
    return {
      title:
        compared === undefined ? 'Compare players' : compared.players.map(({ playerName }) => playerName).join(' and '),
      description: 'The boards that players share, and who leads where.',
      canonical: withQuery('/compare/players', { names: names.join(',') }),
      isUnlisted: true,
      section: '/compare',
      content: (
        <>
          <h1>Compare players</h1>
          <form action="/compare/players" class="row">
            <input
              name="names"
              value={names.join(',')}
              placeholder="Two names, separated by a comma"
              aria-label="Names of two players, separated by a comma"
              maxlength={500}
              required
            />
            <button type="submit">Compare</button>
          </form>
          {compared === undefined ? (
            <p>{names.length < 2 ? 'Enter two names.' : 'Two different names are needed.'}</p>
          ) : (
            <Shared compared={compared} names={names} page={input.page} />
          )}
        </>
      )
    }
  }
})

function namesOf({ names = '', with: other = '' }: Pick<PlayersInput, 'names' | 'with'>): string[] {
  return [...names.split(','), other]
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .slice(0, 2)
}

function Shared({
  compared,
  names,
  page: number
}: {
  compared: PlayerComparison
  names: readonly string[]
  page: number
}) {
  const { players, total, ties, boards } = compared
  const pages = pageOf(number, total, BOARDS)
  return (
    <>
      <ul class="plain row">
        {players.map(({ playerName, leaderboardsOn, leads }) => (
          <li key={playerName}>
            <PlayerLink name={playerName} />: leads <strong>{count(leads)}</strong>, on{' '}
            {plural(leaderboardsOn, 'board')}
          </li>
        ))}
      </ul>
      <p class="quiet">
        {plural(total, 'shared board')}, {plural(ties, 'tie')}.
      </p>
      {boards.length === 0 ? null : (
        <section class="card">
          <Table
            label="Shared boards"
            head={['Board', 'Game', ...players.map(({ playerName }) => `#${playerName}`), '#Gap']}
          >
            {boards.map((board) => (
              <tr key={`${board.titleId}/${board.leaderboardId}`}>
                <th scope="row">
                  <BoardLink {...board} />
                </th>
                <td>
                  <Name>{board.gameName}</Name>
                </td>
                {players.map(({ playerName }, index) => {
                  const entry =
                    board.entries.find((each) => each.playerName.toLowerCase() === playerName.toLowerCase()) ??
                    (board.entries.length === players.length ? board.entries[index] : undefined)
                  return (
                    <td
                      key={playerName}
                      class={board.leader?.toLowerCase() === playerName.toLowerCase() ? 'number best' : 'number'}
                    >
                      {entry === undefined
                        ? ''
                        : `${measureText(entry.rating, entry.timeMs, entry.isTime)} (#${entry.rank})`}
                    </td>
                  )
                })}
                <td class="number">
                  {board.gap === null ? '' : gapText(board.entries[0]?.isTime === true, board.gap, 0)}
                </td>
              </tr>
            ))}
          </Table>
          <Pager
            {...pages}
            hrefOf={(to) => withQuery('/compare/players', { names: names.join(','), page: to === 1 ? undefined : to })}
          />
        </section>
      )}
    </>
  )
}
