import type {
  Calendar,
  Game,
  HourMatrix,
  Leaderboards,
  Matches,
  RecentRecords,
  TitleRanks,
  TitleSummary
} from '@gamenet/schemas'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { calendar, hoursOfWeek, titleRanks } from '../../routes/calendar.js'
import { leaderboards } from '../../routes/leaderboard.js'
import { gameMatches } from '../../routes/match-list.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { gameInfo } from '../../routes/title.js'
import { titleSummary } from '../../routes/title-summary.js'
import { Chart } from '../components/chart.js'
import { addressedTitle } from '../components/game-address.js'
import { daysAgo, historyFacts, historyOf, historyPart, RANGE_TEXTS, spanParameters } from '../components/history.js'
import { bestHours, Hours, WEEKS_MIN } from '../components/hours.js'
import {
  AddToCompare,
  Card,
  Change,
  Choice,
  Icon,
  N,
  Name,
  PlayerLink,
  Table,
  Time,
  Watch
} from '../components/marks.js'
import { RecordList } from '../components/records.js'
import { boardPath, count, dayText, gamePath, monthText, percent, withQuery } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const RANGES = ['48h', '30d', '1y', 'all'] as const
const HOUR_WEEKS = 12
const MONTHS_SHOWN = 8
const BOARDS_SHOWN = 12
const MATCHES_SHOWN = 10
const YEAR_DAYS = 364

const gameInput = z.object({
  game: text({ example: '4d530064' }),
  slug: text({ example: 'halo-2' }),
  ...spanParameters(RANGES),
  overlay: oneOf(['week', 'year']).optional(),
  compare: text({ example: '4d5307e6', max: 100 }).optional(),
  boards: integer({ min: 0, max: 1 }).optional()
})
type GameInput = z.infer<typeof gameInput>

/** `/games/:game` and other spellings: redirected. */
export const gameRedirect = page({
  name: 'page-game-redirect',
  path: '/games/:game',
  input: z.object({ game: text({ example: '4d530064' }) }),
  parts: async (input, context) => {
    await addressedTitle(input, context)
    return {}
  },
  view: () => ({ title: '', canonical: '/', content: null })
})

/** `/games/:game/:slug`: one game. */
export const gamePage = page({
  name: 'page-game',
  path: '/games/:game/:slug',
  input: gameInput,
  parts: async ({ game, slug, ...input }, context) => {
    const { titleId } = await addressedTitle({ game, slug }, context, { query: queryOf(input) })
    const { nowMs } = context
    const other = input.compare === undefined ? undefined : { titleId: input.compare }
    const shift = input.overlay === undefined ? undefined : shiftOf(input.overlay)
    return {
      title: ask<TitleSummary>(titleSummary, { titleId }),
      info: tryAsk<Game>(gameInfo, { game: titleId }),
      history: historyPart({ titleId }, input, nowMs),
      ...(other === undefined ? {} : { other: historyPart(other, input, nowMs) }),
      ...(shift === undefined ? {} : { before: historyPart({ titleId }, input, nowMs, shift) }),
      months: tryAsk<Calendar>(calendar, { titleIds: titleId, every: 'month', tz: input.tz }),
      hours: tryAsk<HourMatrix>(hoursOfWeek, { titleId, tz: input.tz, from: daysAgo(nowMs, 7 * HOUR_WEEKS) }),
      ranks: tryAsk<TitleRanks>(titleRanks, { titleId, every: 'month' }),
      boards: tryAsk<Leaderboards>(leaderboards, { game: titleId }),
      records: tryAsk<RecentRecords>(recentlySetRecords, { game: titleId, limit: 500 }),
      matches: tryAsk<Matches>(gameMatches, { titleId })
    }
  },
  view: (answers, input, { resolved }) => {
    const { title, info, hours } = answers
    const path = gamePath({ titleId: title.titleId, name: title.name })
    const best = bestHours(hours)
    const series = [
      historyOf(title.name, answers.history, input, resolved.history),
      ...(resolved.before === undefined || input.overlay === undefined
        ? []
        : [
            dotted(
              historyOf(
                `${title.name}, a ${input.overlay} before`,
                answers.before,
                input,
                resolved.before,
                shiftOf(input.overlay)
              )
            )
          ]),
      ...(resolved.other === undefined
        ? []
        : [dotted(historyOf(nameOfOther(answers.other, input), answers.other, input, resolved.other))])
    ]
    const span = series[0] ?? { fromMs: 0, toMs: 0 }
    return {
      title: title.online === null ? title.name : `${title.name}: ${count(title.online)} playing now`,
      description: descriptionOf(title, best),
      canonical: path,
      isUnlisted: Object.values(queryOf(input)).some((value) => value !== undefined),
      picture: `/games/${title.titleId}/card.png`,
      section: '/games',
      hasChart: true,
      content: (
        <>
          <Head title={title} info={info} path={path} months={answers.months ?? []} />
          <section class="card wide">
            <div class="card-head">
              <h2>Players</h2>
              <Choice label="Range" options={rangesOf(path, input)} />
            </div>
            <Chart
              series={series.map((each) => each.series)}
              fromMs={span.fromMs}
              toMs={span.toMs}
              label={`Players of ${title.name}`}
              zoomPath={path}
              live={`title/${title.titleId}`}
            />
            <p class="quiet">{historyFacts(answers.history, input, resolved.history)}</p>
            <ChartTools path={path} input={input} titleId={title.titleId} />
          </section>
          <div class="columns">
            <BestTime hours={hours ?? []} best={best} input={input} path={path} />
            <Months months={answers.months ?? []} titleId={title.titleId} />
            <Boards
              boards={answers.boards ?? []}
              records={answers.records ?? []}
              title={title}
              isAll={input.boards === 1}
            />
            <OpenMatches matches={answers.matches} path={path} />
            <Card title="Records beaten" more={<a href={`/records?game=${title.titleId}`}>All records</a>}>
              <RecordList records={(answers.records ?? []).filter((each) => each.isContested).slice(0, 8)} />
            </Card>
            <Ranks ranks={answers.ranks ?? []} />
          </div>
        </>
      )
    }
  }
})

function queryOf({ range, from, to, tz, overlay, compare, boards }: Omit<GameInput, 'game' | 'slug'>) {
  return {
    range: range === RANGES[0] ? undefined : range,
    from: from === undefined ? undefined : new Date(from).toISOString(),
    to: to === undefined ? undefined : new Date(to).toISOString(),
    tz: tz === 'UTC' ? undefined : tz,
    overlay,
    compare,
    boards
  }
}

function shiftOf(overlay: 'week' | 'year'): number {
  return overlay === 'week' ? 7 : YEAR_DAYS
}

function dotted<Of extends ReturnType<typeof historyOf>>({ series, ...span }: Of): ReturnType<typeof historyOf> {
  const { band: _band, ...line } = series
  return { series: { ...line, isDotted: true }, ...span } as ReturnType<typeof historyOf>
}

/** Calendars name the title; samples do not. */
function nameOfOther(rows: unknown, { compare = '' }: GameInput): string {
  const [first] = (rows ?? []) as readonly { readonly name?: string }[]
  return first?.name ?? compare
}

function descriptionOf({ name, peak24h, peak, peakAt }: TitleSummary, best: ReturnType<typeof bestHours>): string {
  const parts = [
    peak24h === null ? '' : `24 h peak ${count(peak24h)}`,
    peak === null || peakAt === null ? '' : `all-time ${count(peak)} on ${dayText(peakAt)}`
  ].filter((part) => part !== '')
  const peaks = parts.length === 0 ? `No count of ${name} yet.` : `${parts.join(', ')}.`
  return best === undefined ? peaks : `${peaks} Best time: ${best.day} ${best.text} UTC.`
}

type HeadProps = { title: TitleSummary; info: Game | undefined; path: string; months: Calendar }

function Head({ title, info, path, months }: HeadProps) {
  const { titleId, name, online, peak24h, peak, peakAt, rank, titles } = title
  const share = months.at(-1)?.share ?? null
  const beforeOf = (change: number | null) => (online === null || change === null ? null : online - change)
  const facts = [info?.publisher ?? '', (info?.releaseDate ?? '').slice(0, 4)].filter((fact) => fact !== '')
  return (
    <section class="head">
      <div class="titled">
        <Icon image={info?.image} name={name} size={56} />
        <div>
          <h1>
            <Name>{name}</Name>
          </h1>
          <p class="quiet">
            {facts.map((fact) => `${fact} · `)}
            {titleId}
          </p>
        </div>
        <div class="tools">
          <Watch href={path} name={name} />
          <AddToCompare kind="games" id={titleId} name={name} />
          <button type="button" class="share" hidden>
            Share
          </button>
          <a href={`/docs/guide/embed?path=${encodeURIComponent(`/embed/games/${titleId}`)}`}>Embed</a>
          <a href={`/api/title/${titleId}/online-users/history?hours=720&format=csv`} rel="nofollow">
            CSV
          </a>
        </div>
      </div>
      {online === null ? (
        <p>No count of this game yet.</p>
      ) : (
        <p class="headline">
          <strong>
            <N of={online} live={`title/${titleId}`} />
          </strong>{' '}
          playing now{' '}
          <span class="changes">
            <Change now={online} before={beforeOf(title.change24h)} than="on yesterday" />
            <Change now={online} before={beforeOf(title.change7d)} than="on last week" />
            <Change now={online} before={beforeOf(title.change30d)} than="on 30 days ago" />
          </span>
        </p>
      )}
      <p class="quiet">
        {peak24h === null ? null : (
          <>
            24 h peak <N of={peak24h} />
          </>
        )}
        {peak === null || peakAt === null ? null : (
          <>
            {' '}
            · all-time <N of={peak} /> (<Time at={peakAt} day />)
          </>
        )}
        {rank === null || online === 0 ? null : (
          <>
            {' '}
            · #{rank} of {titles}
          </>
        )}
        {share === null ? null : ` · ${percent(share)} of the network this month`}
      </p>
    </section>
  )
}

function rangesOf(path: string, input: GameInput) {
  const { from: _from, to: _to, ...query } = queryOf(input)
  return RANGES.map((range) => ({
    text: RANGE_TEXTS[range] ?? range,
    href: withQuery(path, { ...query, range: range === RANGES[0] ? undefined : range }),
    isCurrent: input.from === undefined && range === input.range
  }))
}

function ChartTools({ path, input, titleId }: { path: string; input: GameInput; titleId: string }) {
  const query = queryOf(input)
  const toggled = (overlay: 'week' | 'year') =>
    withQuery(path, { ...query, overlay: input.overlay === overlay ? undefined : overlay })
  return (
    <div class="row tools">
      <a href={toggled('week')} rel="nofollow" aria-current={input.overlay === 'week' ? 'true' : undefined}>
        Overlay: a week before
      </a>
      <a href={toggled('year')} rel="nofollow" aria-current={input.overlay === 'year' ? 'true' : undefined}>
        A year before
      </a>
      <form action={path} class="row">
        {Object.entries(query).map(([name, value]) =>
          value === undefined || name === 'compare' ? null : (
            <input key={name} type="hidden" name={name} value={String(value)} />
          )
        )}
        <input
          name="compare"
          value={input.compare}
          placeholder="Compare with a game"
          aria-label="Game to compare with"
          maxlength={100}
          data-suggest="games"
        />
        <button type="submit">Compare</button>
      </form>
      <a href={`/compare?games=${titleId}`} rel="nofollow">
        Compare periods
      </a>
    </div>
  )
}

type BestTimeProps = { hours: HourMatrix; best: ReturnType<typeof bestHours>; input: GameInput; path: string }

function BestTime({ hours, best, input, path }: BestTimeProps) {
  return (
    <Card title="Best time to play" id="best-time">
      {best === undefined ? (
        <p class="quiet">Needs {WEEKS_MIN} weeks of data.</p>
      ) : (
        <>
          <p>
            <strong>
              {best.day} {best.text}
            </strong>
            , about <N of={best.average} />
          </p>
          <Hours hours={hours} zone={input.tz} />
        </>
      )}
      <p class="quiet">
        The last {HOUR_WEEKS} weeks, hours in {input.tz}.{' '}
        <a class="in-zone" href={`${path}#best-time`} rel="nofollow" hidden>
          In my zone
        </a>
      </p>
    </Card>
  )
}

function Months({ months, titleId }: { months: Calendar; titleId: string }) {
  const shown = months.toReversed().slice(0, MONTHS_SHOWN)
  return (
    <Card
      title="Months"
      more={
        <a href={`/api/calendar?titleIds=${titleId}&every=month&format=csv`} rel="nofollow">
          CSV
        </a>
      }
    >
      {shown.length === 0 ? (
        <p class="quiet">No data yet.</p>
      ) : (
        <Table label="Months" head={['Month', '#Average', '#Gain', '#Peak', '#Share']}>
          {shown.map(({ date, average, gainPercent, peak, share }, index) => (
            <tr key={date}>
              <th scope="row">
                {monthText(date)}
                {index === 0 ? <span class="quiet"> unfinished</span> : null}
              </th>
              <td class="number">
                <N of={average} />
              </td>
              <td class="number">
                {gainPercent === null ? '' : `${gainPercent > 0 ? '+' : ''}${gainPercent.toFixed(1)} %`}
              </td>
              <td class="number">
                <N of={peak} />
              </td>
              <td class="number">{share === null ? '' : percent(share)}</td>
            </tr>
          ))}
        </Table>
      )}
      <p>
        <a href={`/compare?games=${titleId}&every=month&range=all`} rel="nofollow">
          All months
        </a>
      </p>
    </Card>
  )
}

type BoardsProps = { boards: Leaderboards; records: RecentRecords; title: TitleSummary; isAll: boolean }

function Boards({ boards, records, title, isAll }: BoardsProps) {
  if (boards.length === 0) return null
  const recordOf = new Map(records.filter((each) => each.isCurrent).map((each) => [each.leaderboardId, each]))
  const shown = isAll ? boards : boards.slice(0, BOARDS_SHOWN)
  return (
    <Card title={`Boards (${count(boards.length)})`} id="boards">
      <Table label="Boards" head={['Board', '#Record', 'Holder']}>
        {shown.map(({ id, name }) => {
          const record = recordOf.get(id)
          return (
            <tr key={id}>
              <th scope="row">
                <a href={boardPath(title, id)}>
                  <Name>{name}</Name>
                </a>
              </th>
              <td class="number">{record === undefined ? '' : record.timeFormatted || record.rating}</td>
              <td>{record === undefined ? '' : <PlayerLink name={record.playerName} />}</td>
            </tr>
          )
        })}
      </Table>
      {shown.length < boards.length ? (
        <p>
          <a href={`${gamePath(title)}?boards=1#boards`}>All {count(boards.length)} boards</a>
        </p>
      ) : null}
    </Card>
  )
}

function OpenMatches({ matches, path }: { matches: Matches | undefined; path: string }) {
  const open = matches?.matches ?? []
  const players = open.reduce((sum, { currentPlayers }) => sum + currentPlayers, 0)
  return (
    <Card title="Open matches" more={<a href={`${path}/matches`}>History and hosts</a>}>
      {open.length === 0 ? (
        <p class="quiet">None at the moment.</p>
      ) : (
        <>
          <p>
            <N of={open.length} />, <N of={players} /> players
          </p>
          <ul class="plain">
            {open.slice(0, MATCHES_SHOWN).map(({ hostName, currentPlayers, maxPlayers }, index) => (
              <li key={index}>
                {currentPlayers}/{maxPlayers === 0 ? '?' : maxPlayers} <PlayerLink name={hostName} />
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  )
}

function Ranks({ ranks }: { ranks: TitleRanks }) {
  const shown = ranks.toReversed().slice(0, MONTHS_SHOWN)
  if (shown.length === 0) return null
  return (
    <Card title="Rank over time">
      <Table label="Rank by month" head={['Month', '#Rank', '#of']}>
        {shown.map(({ date, rank, titles }) => (
          <tr key={date}>
            <th scope="row">{monthText(date)}</th>
            <td class="number">{rank}</td>
            <td class="number">{titles}</td>
          </tr>
        ))}
      </Table>
    </Card>
  )
}
