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
import { Field, Form, Toggle } from '../components/form.js'
import { addressedTitle } from '../components/game-address.js'
import { daysAgo, historyFacts, historyPart, linesOf, spanParameters } from '../components/history.js'
import { HistoryCard } from '../components/history-card.js'
import { bestHours, Hours, WEEKS_MIN } from '../components/hours.js'
import {
  Card,
  Change,
  Csv,
  Facts,
  Icon,
  InZone,
  N,
  Name,
  Peak,
  PlayerLink,
  Share,
  Time,
  Tools
} from '../components/marks.js'
import { RecordLine } from '../components/records.js'
import { FeedCard, TableCard } from '../components/table.js'
import { boardPath, count, dayText, gamePath, monthText, percent, slotsText } from '../components/text.js'
import { ask, page, type Query, tryAsk } from '../values/page.js'

const RANGES = ['48h', '30d', '1y', 'all'] as const
const HOUR_WEEKS = 12
const MONTHS_SHOWN = 8
const BOARDS_SHOWN = 12
const MATCHES_SHOWN = 10
const RECORDS_SHOWN = 8
/** By weeks, so that the days of the week agree. */
const SHIFT_DAYS = { week: 7, year: 364 } as const

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
  input: gameInput.omit({ slug: true }),
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
    const { titleId } = await addressedTitle({ game, slug }, context)
    const { nowMs } = context
    // No more than is shown: the rank reads the days of all games.
    const from = daysAgo(nowMs, 31 * MONTHS_SHOWN)
    return {
      title: ask<TitleSummary>(titleSummary, { titleId }),
      info: tryAsk<Game>(gameInfo, { game: titleId }),
      history: historyPart({ titleId }, input, nowMs),
      ...(input.compare === undefined ? {} : { other: historyPart({ titleId: input.compare }, input, nowMs) }),
      ...(input.overlay === undefined
        ? {}
        : { before: historyPart({ titleId }, input, nowMs, SHIFT_DAYS[input.overlay]) }),
      months: tryAsk<Calendar>(calendar, { titleIds: titleId, every: 'month', tz: input.tz, from }),
      hours: tryAsk<HourMatrix>(hoursOfWeek, { titleId, tz: input.tz, from: daysAgo(nowMs, 7 * HOUR_WEEKS) }),
      ranks: tryAsk<TitleRanks>(titleRanks, { titleId, every: 'month', from }),
      boards: tryAsk<Leaderboards>(leaderboards, { game: titleId }),
      records: tryAsk<RecentRecords>(recentlySetRecords, { game: titleId, limit: 500 }),
      matches: tryAsk<Matches>(gameMatches, { titleId })
    }
  },
  view: (answers, input, { resolved, query }) => {
    const { title, info, hours } = answers
    const { titleId, name } = title
    const path = gamePath({ titleId, name })
    const best = bestHours(hours)
    const shift = { shiftDays: SHIFT_DAYS[input.overlay ?? 'week'], isDotted: true }
    return {
      title: title.online === null ? name : `${name}: ${count(title.online)} playing now`,
      description: descriptionOf(title, best),
      canonical: path,
      picture: `/games/${titleId}/card.png`,
      section: '/games',
      hasChart: true,
      content: (
        <>
          <Head title={title} info={info} path={path} months={answers.months ?? []} />
          <HistoryCard
            title="Players"
            path={path}
            query={query}
            ranges={RANGES}
            span={input}
            lines={linesOf(input, [
              [name, answers.history, resolved.history],
              [`${name}, a ${input.overlay} before`, answers.before, resolved.before, shift],
              [nameOfOther(answers.other, input), answers.other, resolved.other, { isDotted: true }]
            ])}
            label={`Players of ${name}`}
            live={`title/${titleId}`}
          >
            <p class="quiet">{historyFacts(answers.history, input, resolved.history)}</p>
            <ChartTools path={path} query={query} titleId={titleId} />
          </HistoryCard>
          <div class="columns">
            <BestTime hours={hours ?? []} best={best} input={input} path={path} />
            <Months months={answers.months ?? []} titleId={titleId} />
            <Boards
              boards={answers.boards ?? []}
              records={answers.records ?? []}
              title={title}
              isAll={input.boards === 1}
            />
            <OpenMatches matches={answers.matches} path={path} />
            <FeedCard
              title="Records beaten"
              more={<a href={`/records?game=${titleId}`}>All records</a>}
              rows={(answers.records ?? []).filter((each) => each.isContested).slice(0, RECORDS_SHOWN)}
              row={(record) => <RecordLine record={record} />}
            />
            {answers.ranks === undefined || answers.ranks.length === 0 ? null : <Ranks ranks={answers.ranks} />}
          </div>
        </>
      )
    }
  }
})

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
  const share = months.at(-1)?.share
  const changes = [
    [title.change24h, 'on yesterday'],
    [title.change7d, 'on last week'],
    [title.change30d, 'on 30 days ago']
  ] as const
  return (
    <section class="head">
      <div class="titled">
        <Icon image={info?.image} name={name} size={56} />
        <div>
          <h1>
            <Name>{name}</Name>
          </h1>
          <p class="quiet">
            <Facts of={[info?.publisher, info?.releaseDate?.slice(0, 4), titleId]} />
          </p>
        </div>
        <Tools
          path={path}
          name={name}
          embed={`/embed/games/${titleId}`}
          csv={`/api/title/${titleId}/online-users/history?hours=720&format=csv`}
          compare={{ kind: 'games', id: titleId }}
        />
      </div>
      {online === null ? (
        <p>No count of this game yet.</p>
      ) : (
        <p class="headline">
          <N of={online} live={`title/${titleId}`} /> playing now{' '}
          <span class="changes">
            {changes.map(([change, than]) => (
              <Change key={than} now={online} before={change === null ? null : online - change} than={than} />
            ))}
          </span>
        </p>
      )}
      <p class="quiet">
        <Facts
          of={[
            peak24h === null ? null : <Peak name="24 h peak" of={peak24h} />,
            peak === null ? null : <Peak name="all-time" of={peak} at={peakAt} />,
            rank === null || online === 0 ? null : `#${rank} of ${titles}`,
            title.onlineAt === null ? null : (
              <>
                last update <Time at={title.onlineAt} ago />
              </>
            ),
            share == null ? null : `${percent(share)} of the network this month`
          ]}
        />
      </p>
    </section>
  )
}

function ChartTools({ path, query, titleId }: { path: string; query: Query; titleId: string }) {
  return (
    <div class="row tools">
      <Toggle path={path} query={query} name="overlay" value="week">
        Overlay: a week before
      </Toggle>
      <Toggle path={path} query={query} name="overlay" value="year">
        A year before
      </Toggle>
      <Form action={path} submit="Compare" hidden={{ ...query, compare: undefined }}>
        <Field name="compare" value={query.compare} label="Compare with a game" />
      </Form>
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
        The last {HOUR_WEEKS} weeks, hours in {input.tz}. <InZone path={`${path}#best-time`} />
      </p>
    </Card>
  )
}

function Months({ months, titleId }: { months: Calendar; titleId: string }) {
  return (
    <TableCard
      title="Months"
      more={
        <>
          <a href={`/compare?games=${titleId}&every=month&range=all`} rel="nofollow">
            All
          </a>{' '}
          <Csv href={`/api/calendar?titleIds=${titleId}&every=month&format=csv`} />
        </>
      }
      rows={months.toReversed().slice(0, MONTHS_SHOWN)}
      columns={[
        ['Month', ({ date }, index) => `${monthText(date)}${index === 0 ? ', unfinished' : ''}`],
        ['#Average', ({ average }) => <N of={average} />],
        ['#Gain', ({ gainPercent }) => <Share of={gainPercent === null ? null : gainPercent / 100} />],
        ['#Peak', ({ peak }) => <N of={peak} />],
        ['#Share', ({ share }) => (share === null ? '' : percent(share))]
      ]}
    />
  )
}

type BoardsProps = { boards: Leaderboards; records: RecentRecords; title: TitleSummary; isAll: boolean }

function Boards({ boards, records, title, isAll }: BoardsProps) {
  if (boards.length === 0) return null
  const recordOf = new Map(records.filter((each) => each.isCurrent).map((each) => [each.leaderboardId, each]))
  const rows = boards.map(({ id, name }) => ({ id, name, record: recordOf.get(id) }))
  return (
    <TableCard
      title={`Boards (${count(boards.length)})`}
      id="boards"
      more={
        isAll || boards.length <= BOARDS_SHOWN ? undefined : (
          <a href={`${gamePath(title)}?boards=1#boards`}>All {count(boards.length)} boards</a>
        )
      }
      rows={isAll ? rows : rows.slice(0, BOARDS_SHOWN)}
      columns={[
        [
          'Board',
          ({ id, name }) => (
            <a href={boardPath(title, id)}>
              <Name>{name}</Name>
            </a>
          )
        ],
        ['#Record', ({ record }) => record?.timeFormatted || record?.rating],
        ['Holder', ({ record }) => record && <PlayerLink name={record.playerName} />]
      ]}
    />
  )
}

function OpenMatches({ matches, path }: { matches: Matches | undefined; path: string }) {
  const open = matches?.matches ?? []
  return (
    <FeedCard
      title={`Open matches (${count(open.length)})`}
      more={<a href={`${path}/matches`}>History and hosts</a>}
      rows={open.slice(0, MATCHES_SHOWN)}
      empty="None at the moment."
      row={({ hostName, currentPlayers, maxPlayers }) => (
        <>
          {slotsText(currentPlayers, maxPlayers)} <PlayerLink name={hostName} />
        </>
      )}
    />
  )
}

function Ranks({ ranks }: { ranks: TitleRanks }) {
  return (
    <TableCard
      title="Rank over time"
      rows={ranks.toReversed().slice(0, MONTHS_SHOWN)}
      columns={[
        ['Month', ({ date }) => monthText(date)],
        ['#Rank', ({ rank }) => rank],
        ['#of', ({ titles }) => titles]
      ]}
    />
  )
}
