import type {
  CollectorStatus,
  LeaderboardChanges,
  OnlineHistory,
  OnlineUsers,
  Peaks,
  RecentRecords,
  RecentUnlocks,
  RegisteredUsers,
  Sparklines,
  TopGames
} from '@gamenet/schemas'
import { z } from 'zod'
import { integer } from '../../request/parameters.js'
import { recentUnlocks } from '../../routes/achievement-unlock-feed.js'
import { peaks } from '../../routes/calendar.js'
import { collectorStatus } from '../../routes/coverage.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { onlineHistory, registeredUsers } from '../../routes/network-count.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { sparklines } from '../../routes/sparkline.js'
import { onlineUsers, topGames } from '../../routes/title-count.js'
import { Chart, Trend } from '../components/chart.js'
import { type GameRow, gameRows } from '../components/games.js'
import { historyFacts, historyOf, historyPart, iso, RANGE_TEXTS, spanParameters } from '../components/history.js'
import { Card, Change, Choice, GameLink, N, Table, Time, UserLink } from '../components/marks.js'
import { ChangeSums, RecordList } from '../components/records.js'
import { count, DAY_MS, HOUR_MS, percent, withQuery } from '../components/text.js'
import { ask, page, SITE_NAME, tryAsk } from '../values/page.js'

const RANGES = ['24h', '7d', '30d', '1y', 'all'] as const
const GAMES_SHOWN = 25
const SHOWN = 8
const MOVERS = 3
const WEEK_DAYS = 7

const homeInput = z.object({
  ...spanParameters(RANGES),
  lobbies: integer({ min: 0, max: 1 }).default(0)
})
type HomeInput = z.infer<typeof homeInput>

/** `/`: the network now. */
export const homePage = page({
  name: 'page-home',
  path: '/',
  input: homeInput,
  parts: (input: HomeInput, { nowMs }) => {
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
    const hasOverlay = input.from === undefined && (input.range === '24h' || input.range === '7d')
    return {
      online: ask<OnlineUsers>(onlineUsers),
      day: tryAsk<OnlineHistory>(onlineHistory, { days: 1 }),
      weekBefore: tryAsk<OnlineHistory>(onlineHistory, {
        from: iso(Math.floor(nowMs / 60_000) * 60_000 - WEEK_DAYS * DAY_MS - HOUR_MS),
        to: iso(Math.floor(nowMs / 60_000) * 60_000 - WEEK_DAYS * DAY_MS)
      }),
      history: historyPart({ metric: 'online' }, input, nowMs),
      ...(hasOverlay ? { before: historyPart({ metric: 'online' }, input, nowMs, WEEK_DAYS) } : {}),
      ...(input.lobbies === 1 ? { lobbies: historyPart({ metric: 'lobbies' }, input, nowMs) } : {}),
      peaks: tryAsk<Peaks>(peaks),
      registered: tryAsk<RegisteredUsers>(registeredUsers),
      today: tryAsk<TopGames>(topGames, { from: iso(hourMs - DAY_MS), to: iso(hourMs) }),
      yesterday: tryAsk<TopGames>(topGames, { from: iso(hourMs - 2 * DAY_MS), to: iso(hourMs - DAY_MS) }),
      trends: tryAsk<Sparklines>(sparklines, { days: 7 }),
      records: tryAsk<RecentRecords>(recentlySetRecords, { contested: 'true', limit: SHOWN }),
      unlocks: tryAsk<RecentUnlocks>(recentUnlocks, { limit: SHOWN }),
      changes: tryAsk<LeaderboardChanges>(leaderboardChanges, { limit: 200 }),
      status: tryAsk<CollectorStatus>(collectorStatus)
    }
  },
  view: (answers, input, { resolved }) => {
    const rows = gameRows(answers)
    const last = answers.day?.at(-1)
    const series = [
      historyOf('Players', answers.history, input, resolved.history),
      ...(resolved.before === undefined
        ? []
        : [dotted(historyOf('a week before', answers.before, input, resolved.before, WEEK_DAYS))]),
      ...(resolved.lobbies === undefined ? [] : [right(historyOf('Lobbies', answers.lobbies, input, resolved.lobbies))])
    ]
    const span = series[0] ?? { fromMs: 0, toMs: 0 }
    return {
      title: last === undefined ? SITE_NAME : `${count(last.online_count)} players online`,
      description:
        'Players, games, leaderboards and records of the network: now, and at any instant since counting began.',
      canonical: '/',
      isUnlisted: Object.values(queryOf(input)).some((value) => value !== undefined),
      hasChart: true,
      feeds: [{ title: 'Records beaten', href: '/api/records/recent.atom?contested=true' }],
      content: (
        <>
          <section class="card" id="watched" hidden>
            <div class="card-head">
              <h2>Watch list</h2>
              <button type="button" class="more" hidden>
                Notify me
              </button>
            </div>
            <ul class="plain row" />
          </section>
          {answers.status?.history == null ? null : (
            <p class="note">History is loading: {answers.status.history.percent} %.</p>
          )}
          <Now answers={answers} />
          <section class="card">
            <div class="card-head">
              <h2>Players online</h2>
              <Choice label="Range" options={rangesOf(input)} />
            </div>
            <Chart
              series={series.map((each) => each.series)}
              fromMs={span.fromMs}
              toMs={span.toMs}
              label="Players online"
              zoomPath="/"
              live="network"
            />
            <p class="quiet row">
              {historyFacts(answers.history, input, resolved.history)}
              <a
                href={withQuery('/', { ...queryOf(input), lobbies: input.lobbies === 1 ? undefined : 1 })}
                rel="nofollow"
              >
                {input.lobbies === 1 ? 'Without lobbies' : 'With lobbies'}
              </a>
              <a href="/api/network-stats/online-24h?days=30&format=csv" rel="nofollow">
                CSV
              </a>
              <a href="/docs/guide/embed?path=/embed/network">Embed</a>
            </p>
          </section>
          <div class="split">
            <div class="first-ten">
              <Games rows={rows} />
            </div>
            <div class="columns">
              <Movers rows={rows} />
              <Card title="Records beaten" more={<a href="/records">All</a>}>
                <RecordList records={answers.records ?? []} hasGame />
              </Card>
              <Unlocks unlocks={answers.unlocks} />
              <Card title="Board changes" more={<a href="/changes">All</a>}>
                <ChangeSums changes={answers.changes ?? []} limit={SHOWN} />
              </Card>
            </div>
          </div>
          <State status={answers.status} />
        </>
      )
    }
  }
})

function queryOf({ range, from, to, tz, lobbies }: HomeInput) {
  return {
    range: range === RANGES[0] ? undefined : range,
    from: from === undefined ? undefined : iso(from),
    to: to === undefined ? undefined : iso(to),
    tz: tz === 'UTC' ? undefined : tz,
    lobbies: lobbies === 0 ? undefined : lobbies
  }
}

function rangesOf(input: HomeInput) {
  return RANGES.map((range) => ({
    text: RANGE_TEXTS[range] ?? range,
    href: withQuery('/', {
      lobbies: input.lobbies === 1 ? 1 : undefined,
      range: range === RANGES[0] ? undefined : range
    }),
    isCurrent: input.from === undefined && range === input.range
  }))
}

type Drawn = ReturnType<typeof historyOf>

function dotted({ series: { name, points }, ...span }: Drawn): Drawn {
  return { series: { name, points, isDotted: true }, ...span }
}

function right({ series: { name, points }, ...span }: Drawn): Drawn {
  return { series: { name, points, isRight: true }, ...span }
}

type NowProps = {
  readonly day: OnlineHistory | undefined
  readonly weekBefore: OnlineHistory | undefined
  readonly peaks: Peaks | undefined
  readonly registered: RegisteredUsers | undefined
  readonly status: CollectorStatus | undefined
}

function Now({ answers: { day = [], weekBefore = [], peaks: ever = [], registered, status } }: { answers: NowProps }) {
  const last = day.at(-1)
  if (last === undefined) return <Empty status={status} />
  const users = registered?.at(-1)?.registered_count
  const highest = Math.max(...day.map(({ online_count }) => online_count))
  const network = ever.find(({ titleId, name }) => titleId === null && name === 'online')
  return (
    <section class="head">
      <h1 class="headline">
        <strong>
          <N of={last.online_count} live="network" />
        </strong>{' '}
        players online{' '}
      </h1>
      <p class="row">
        <Change now={last.online_count} before={weekBefore.at(-1)?.online_count ?? null} than="on a week before" />
        <span class="quiet">
          24 h peak <N of={highest} />
          {network === undefined ? null : (
            <>
              {' '}
              · all-time <N of={network.peak} /> (<Time at={network.peakAt} day />)
            </>
          )}
          {users === undefined ? null : (
            <>
              {' '}
              · <N of={users} /> registered
            </>
          )}
        </span>
      </p>
    </section>
  )
}

function Empty({ status }: { status: CollectorStatus | undefined }) {
  const network = status?.sources.find(({ source }) => source === 'network')
  const isFailing = network?.lastOutcome === 'failed'
  return (
    <section class="head">
      <h1>{SITE_NAME}</h1>
      {isFailing ? (
        <p>
          The network’s page has not answered
          {network.lastSuccessAt === null ? (
            ' yet'
          ) : (
            <>
              {' '}
              since <Time at={network.lastSuccessAt} />
            </>
          )}
          .
        </p>
      ) : (
        <p>Collecting. The first numbers appear within a minute.</p>
      )}
    </section>
  )
}

function Games({ rows }: { rows: readonly GameRow[] }) {
  const playing = rows.filter(({ online }) => online > 0)
  return (
    <Card
      title="Games now"
      more={
        <>
          <a href="/games?playing=1">playing now ({count(playing.length)})</a>{' '}
          <a href="/games">all {count(rows.length)}</a>
        </>
      }
    >
      <Table label="Games now" head={['Game', '#Playing', '#24 h', '7 days', '#24 h peak']}>
        {playing.slice(0, GAMES_SHOWN).map(({ titleId, name, image, online, change, peak24h, trend }) => (
          <tr key={titleId}>
            <th scope="row">
              <GameLink titleId={titleId} name={name} image={image} />
            </th>
            <td class="number">
              <N of={online} live={`title/${titleId}`} />
            </td>
            <td class="number">
              <Share of={change} />
            </td>
            <td>
              <Trend values={trend} label={`7 days of ${name}`} />
            </td>
            <td class="number">{peak24h === null ? '' : <N of={peak24h} />}</td>
          </tr>
        ))}
      </Table>
    </Card>
  )
}

/** A change as a signed share. */
export function Share({ of }: { of: number | null }) {
  if (of === null) return null
  return (
    <span class={of > 0.0005 ? 'up' : of < -0.0005 ? 'down' : ''}>
      {of > 0 ? '+' : of < 0 ? '−' : ''}
      {percent(Math.abs(of))}
    </span>
  )
}

function Movers({ rows }: { rows: readonly GameRow[] }) {
  const moved = rows
    .flatMap((row) => (row.change === null ? [] : [{ ...row, change: row.change }]))
    .sort((a, b) => b.change - a.change)
  const shown = [
    ...moved.filter(({ change }) => change > 0).slice(0, MOVERS),
    ...moved.filter(({ change }) => change < 0).slice(-MOVERS)
  ]
  return (
    <Card title="Movers of the day">
      {shown.length === 0 ? <p class="quiet">Needs two days of data.</p> : null}
      <ul class="plain feed">
        {shown.map(({ titleId, name, change }) => (
          <li key={titleId}>
            <Share of={change} /> <GameLink titleId={titleId} name={name} />
          </li>
        ))}
      </ul>
      <p class="quiet">Mean of 24 hours against the 24 hours before.</p>
    </Card>
  )
}

function Unlocks({ unlocks }: { unlocks: RecentUnlocks | undefined }) {
  const recent = unlocks?.recent ?? []
  return (
    <Card title="Newest achievements" more={<a href="/achievements">All</a>}>
      {recent.length === 0 ? <p class="quiet">None yet.</p> : null}
      <ul class="plain feed">
        {recent.map(({ username, unlockedAt, achievementKey, achievementName }) => (
          <li key={`${username}${achievementKey}`}>
            <UserLink name={username} /> <a href={`/achievements/${achievementKey}`}>{achievementName}</a>{' '}
            <span class="quiet">
              <Time at={unlockedAt} ago />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function State({ status }: { status: CollectorStatus | undefined }) {
  const network = status?.sources.find(({ source }) => source === 'network')
  const gaps = (status?.sources ?? []).reduce((sum, each) => sum + each.gaps, 0)
  return (
    <p class="quiet row">
      {network?.lastSuccessAt == null ? null : (
        <span>
          Data from <Time at={network.lastSuccessAt} ago />
        </span>
      )}
      <a href="/status">{gaps === 0 ? 'collecting well' : `${count(gaps)} gaps in 24 hours`}</a>
      <a href="/docs">API</a>
      <a href="/api/records/recent.atom?contested=true">Atom</a>
    </p>
  )
}
