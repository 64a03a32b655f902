import type {
  CollectorStatus,
  LeaderboardChanges,
  OnlineHistory,
  RecentRecords,
  RecentUnlocks,
  RegisteredUsers
} from '@gamenet/schemas'
import { z } from 'zod'
import type { ResolveContext } from '../../answers/endpoint.js'
import { integer } from '../../request/parameters.js'
import { recentUnlocks } from '../../routes/achievement-unlock-feed.js'
import { collectorStatus } from '../../routes/coverage.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { onlineHistory, registeredUsers } from '../../routes/network-count.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { UnlockLine } from '../components/achievements.js'
import { Toggle } from '../components/form.js'
import { GAME_COLUMNS, type GameRow, gameRows, gamesParts, trendColumn } from '../components/games.js'
import { historyFacts, historyPart, linesOf, spanParameters } from '../components/history.js'
import { HistoryCard } from '../components/history-card.js'
import { Change, Csv, Facts, GameLink, N, Peak, Share, Time } from '../components/marks.js'
import { BoardOfGame, changeSums, RecordLine } from '../components/records.js'
import { FeedCard, TableCard } from '../components/table.js'
import { count, DAY_MS, HOUR_MS } from '../components/text.js'
import { iso } from '../values/iso.js'
import { type Answers, page, SITE_NAME, tryAsk } from '../values/page.js'

const RANGES = ['24h', '7d', '30d', '1y', 'all'] as const
const GAMES_SHOWN = 25
const SHOWN = 8
const MOVERS = 3
const WEEK_DAYS = 7
const TREND_DAYS = 7

const homeInput = z.object({
  ...spanParameters(RANGES),
  lobbies: integer({ min: 0, max: 1 }).default(0)
})
type HomeInput = z.infer<typeof homeInput>

function homeParts(input: HomeInput, { nowMs }: ResolveContext) {
  const hasOverlay = input.from === undefined && (input.range === '24h' || input.range === '7d')
  const weekBeforeMs = Math.floor(nowMs / 60_000) * 60_000 - WEEK_DAYS * DAY_MS
  return {
    ...gamesParts(nowMs, TREND_DAYS),
    day: tryAsk<OnlineHistory>(onlineHistory, { days: 1 }),
    weekBefore: tryAsk<OnlineHistory>(onlineHistory, { from: iso(weekBeforeMs - HOUR_MS), to: iso(weekBeforeMs) }),
    history: historyPart({ metric: 'online' }, input, nowMs),
    ...(hasOverlay ? { before: historyPart({ metric: 'online' }, input, nowMs, WEEK_DAYS) } : {}),
    ...(input.lobbies === 1 ? { lobbies: historyPart({ metric: 'lobbies' }, input, nowMs) } : {}),
    registered: tryAsk<RegisteredUsers>(registeredUsers),
    records: tryAsk<RecentRecords>(recentlySetRecords, { contested: 'true', limit: SHOWN }),
    unlocks: tryAsk<RecentUnlocks>(recentUnlocks, { limit: SHOWN }),
    changes: tryAsk<LeaderboardChanges>(leaderboardChanges, { limit: 200 }),
    status: tryAsk<CollectorStatus>(collectorStatus)
  }
}
type Home = Answers<ReturnType<typeof homeParts>>

/** `/`: the network now. */
export const homePage = page({
  name: 'page-home',
  path: '/',
  input: homeInput,
  parts: homeParts,
  view: (answers, input, { resolved, query }) => {
    const rows = gameRows(answers)
    const last = answers.day?.at(-1)
    return {
      title: last === undefined ? SITE_NAME : `${count(last.online_count)} players online`,
      description:
        'Players, games, leaderboards and records of the network: now, and at any instant since counting began.',
      canonical: '/',
      hasChart: true,
      feeds: [{ title: 'Records beaten', href: '/api/records/recent.atom?contested=true' }],
      content: (
        <>
          <WatchList />
          {answers.status?.history == null ? null : (
            <p class="note">History is loading: {answers.status.history.percent} %.</p>
          )}
          <Now {...answers} />
          <HistoryCard
            title="Players online"
            path="/"
            query={query}
            ranges={RANGES}
            span={input}
            lines={linesOf(input, [
              ['Players', answers.history, resolved.history],
              ['a week before', answers.before, resolved.before, { shiftDays: WEEK_DAYS, isDotted: true }],
              ['Lobbies', answers.lobbies, resolved.lobbies, { isRight: true }]
            ])}
            label="Players online"
            live="network"
          >
            <p class="quiet row">
              {historyFacts(answers.history, input, resolved.history)}
              <Toggle path="/" query={query} name="lobbies" value="1">
                {input.lobbies === 1 ? 'Without lobbies' : 'With lobbies'}
              </Toggle>
              <Csv href="/api/network-stats/online-24h?days=30&format=csv" />
              <a href="/docs/guide/embed?path=/embed/network">Embed</a>
            </p>
          </HistoryCard>
          <div class="split">
            <Games rows={rows} />
            <div>
              <Movers rows={rows} />
              <Feeds {...answers} />
            </div>
          </div>
          <State status={answers.status} />
        </>
      )
    }
  }
})

/** The reader's watch list, which only the browser knows. */
function WatchList() {
  return (
    <section class="card" id="watched" hidden>
      <div class="card-head">
        <h2>Watch list</h2>
        <button type="button" class="more" hidden>
          Notify me
        </button>
      </div>
      <ul class="plain row" />
    </section>
  )
}

function Now({ day = [], weekBefore = [], peaks: ever = [], registered, status }: Home) {
  const last = day.at(-1)
  if (last === undefined) return <Empty status={status} />
  const before = weekBefore.at(-1)
  const users = registered?.at(-1)?.registered_count
  const network = ever.find(({ titleId, name }) => titleId === null && name === 'online')
  return (
    <section class={isFailing(status) ? 'head is-stale' : 'head'}>
      {isFailing(status) ? <Failing status={status} /> : null}
      <h1 class="headline">
        <strong>
          <N of={last.online_count} live="network" />
        </strong>{' '}
        players online
      </h1>
      <p class="row">
        {before === undefined ? null : (
          <Change
            now={last.online_count}
            before={before.online_count}
            than={
              <>
                on <Time at={before.recorded_at} />
              </>
            }
          />
        )}
        <span class="quiet">
          <Facts
            of={[
              <Peak name="24 h peak" of={Math.max(...day.map(({ online_count }) => online_count))} />,
              network && <Peak name="all-time" of={network.peak} at={network.peakAt} />,
              users && <Peak name="registered" of={users} />
            ]}
          />
        </span>
      </p>
    </section>
  )
}

function Empty({ status }: { status: CollectorStatus | undefined }) {
  return (
    <section class="head">
      <h1>{SITE_NAME}</h1>
      {isFailing(status) ? <Failing status={status} /> : <p>Collecting. The first numbers appear within a minute.</p>}
    </section>
  )
}

function networkOf(status: CollectorStatus | undefined) {
  return status?.sources.find(({ source }) => source === 'network')
}

function isFailing(status: CollectorStatus | undefined): boolean {
  return networkOf(status)?.lastOutcome === 'failed'
}

function Failing({ status }: { status: CollectorStatus | undefined }) {
  const since = networkOf(status)?.lastSuccessAt ?? null
  return (
    <p class="note stale">
      The network’s page has not answered {since === null ? 'yet' : 'since '}
      {since === null ? null : <Time at={since} />}.
    </p>
  )
}

function Games({ rows }: { rows: readonly GameRow[] }) {
  const playing = rows.filter(({ online }) => online > 0)
  const { name, online, change, peak24h } = GAME_COLUMNS
  return (
    <TableCard
      title="Games now"
      id="games"
      more={
        <>
          <a href="/games?playing=1">playing now ({count(playing.length)})</a>{' '}
          <a href="/games">all {count(rows.length)}</a>
        </>
      }
      rows={playing.slice(0, GAMES_SHOWN)}
      columns={[name, online, change, trendColumn(TREND_DAYS), peak24h]}
    />
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
    <FeedCard
      title="Movers of the day"
      more={<span class="quiet">24 hours against the 24 before</span>}
      rows={shown}
      empty="Needs two days of data."
      folds
      row={({ titleId, name, change }) => (
        <>
          <Share of={change} /> <GameLink titleId={titleId} name={name} />
        </>
      )}
    />
  )
}

function Feeds({ records = [], unlocks, changes = [] }: Home) {
  return (
    <>
      <FeedCard
        title="Records beaten"
        more={<a href="/records">All</a>}
        rows={records}
        folds
        row={(record) => <RecordLine record={record} hasGame />}
      />
      <FeedCard
        title="Newest achievements"
        more={<a href="/achievements">All</a>}
        rows={unlocks?.recent ?? []}
        folds
        row={(unlock) => <UnlockLine unlock={unlock} />}
      />
      <FeedCard
        title="Board changes"
        more={<a href="/changes">All</a>}
        rows={changeSums(changes).slice(0, SHOWN)}
        folds
        row={({ sums, changedAt, ...board }) => (
          <>
            <BoardOfGame {...board} />
            <span class="quiet">
              : {sums} · <Time at={changedAt} ago />
            </span>
          </>
        )}
      />
    </>
  )
}

function State({ status }: { status: CollectorStatus | undefined }) {
  const network = networkOf(status)
  const gaps = (status?.sources ?? []).reduce((sum, each) => sum + each.gaps, 0)
  return (
    <p class="quiet row">
      {network?.lastSuccessAt == null ? null : (
        <span>
          Data from <Time at={network.lastSuccessAt} ago />
        </span>
      )}
      <a href="/status">{gaps === 0 ? 'collecting well' : `${count(gaps)} gaps in 24 hours`}</a>
    </p>
  )
}
