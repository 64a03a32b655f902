import type {
  EntryMatches,
  Leaderboard,
  LeaderboardChanges,
  LeaderboardComparison,
  LeaderboardDays,
  LeaderboardRecords
} from '@gamenet/schemas'
import { z } from 'zod'
import { instant, integer, knownAt, oneOf, text } from '../../request/parameters.js'
import { requirePast } from '../../routes/known-game.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { leaderboardComparison } from '../../routes/leaderboard-comparison.js'
import { leaderboardDays } from '../../routes/leaderboard-day.js'
import { leaderboard } from '../../routes/leaderboard-entry.js'
import { searchPlayers } from '../../routes/player-entry.js'
import { leaderboardRecords } from '../../routes/record-history.js'
import { Steps, Trend } from '../components/chart.js'
import { Field, Form, Labelled } from '../components/form.js'
import { addressedTitle } from '../components/game-address.js'
import { AddToCompare, Card, Facts, GameLink, Name, PlayerLink, Time, Tools } from '../components/marks.js'
import { boardName, ChangeFacts, changeText, gapText, measureText, stepsOf } from '../components/records.js'
import { type Column, FeedCard, Pager, pageOf, Table } from '../components/table.js'
import {
  boardPath,
  count,
  DAY_MS,
  dayText,
  instantText,
  msOf,
  plural,
  spanText,
  withQuery
} from '../components/text.js'
import { iso } from '../values/iso.js'
import { ask, page, type Query, tryAsk } from '../values/page.js'

const ENTRIES = 50
const CHANGES = 500
const CHANGES_SHOWN = 25
/** An entry that stood so long before the newest change stands out. */
const LONG_DAYS = 365
const REIGNS_SHOWN = 10
const DAYS_SHOWN = 120
const WITH_DAYS = { day: 1, week: 7, month: 30, year: 365 } as const

const boardInput = z.object({
  game: text({ example: '4d530064' }),
  slug: text({ example: 'halo-2' }),
  board: integer({ min: 0, max: 4_294_967_295 }),
  asOf: instant().optional(),
  knownAt,
  from: instant().optional(),
  to: instant().optional(),
  with: oneOf(['day', 'week', 'month', 'year']).optional(),
  page: integer({ min: 1, max: 1_000_000 }).default(1),
  player: text({ example: 'ann', max: 100 }).optional()
})
type BoardInput = z.infer<typeof boardInput>

/** `/games/:game/:slug/boards/:board`: one board, now or as of an instant. */
export const boardPage = page({
  name: 'page-board',
  path: '/games/:game/:slug/boards/:board',
  input: boardInput,
  parts: async ({ game, slug, board, ...input }, context) => {
    const { titleId } = await addressedTitle({ game, slug }, context, `/boards/${board}`)
    const { asOf } = input
    if (asOf !== undefined) requirePast('asOf', asOf, context.nowMs)
    const of = { game: titleId, leaderboardId: board }
    const at = asOf === undefined ? undefined : new Date(asOf).toISOString()
    const nowMs = asOf ?? Math.floor(context.nowMs / 60_000) * 60_000
    const first = { ...of, asOf: at, knownAt: context.query.knownAt }
    return {
      board: ask<Leaderboard>(leaderboard, { ...first, limit: ENTRIES, offset: (input.page - 1) * ENTRIES }),
      top: ask<Leaderboard>(leaderboard, { ...first, limit: 1 }),
      records: tryAsk<LeaderboardRecords>(leaderboardRecords, { ...of, knownAt: context.query.knownAt, limit: 500 }),
      changes: tryAsk<LeaderboardChanges>(leaderboardChanges, { ...of, until: at, limit: CHANGES }),
      ...(input.from === undefined && input.to === undefined
        ? {}
        : {
            set: ask<LeaderboardChanges>(leaderboardChanges, {
              ...of,
              ...{ since: context.query.from, until: context.query.to, limit: CHANGES }
            })
          }),
      days: tryAsk<LeaderboardDays>(leaderboardDays, of),
      ...(input.with === undefined
        ? {}
        : {
            compared: tryAsk<LeaderboardComparison>(leaderboardComparison, {
              ...of,
              from: iso(nowMs - WITH_DAYS[input.with] * DAY_MS),
              to: at,
              limit: 1000
            })
          }),
      ...(input.player === undefined
        ? {}
        : { found: tryAsk<EntryMatches>(searchPlayers, { names: input.player.replaceAll(',', ' '), titleId }) })
    }
  },
  view: ({ board, top, records, changes, days, compared, found, set }, input, { query }) => {
    const path = boardPath({ titleId: board.titleId, name: board.gameName }, board.leaderboardId)
    const name = boardName(board.leaderboardId, board.name)
    const on = input.asOf === undefined ? '' : ` on ${instantText(input.asOf)} UTC`
    const [best] = top.entries
    const { asOf, knownAt } = query
    const isNow = asOf === undefined && knownAt === undefined
    return {
      title: `${name}${on} · ${board.gameName}`,
      description:
        best === undefined
          ? `No entries${on}.`
          : `Record${on}: ${measureText(best.rating, best.timeMs, best.isTime)} by ${best.name}. ` +
            `${plural(board.total, 'entry', 'entries')}.`,
      canonical: withQuery(path, { asOf, knownAt }),
      picture: withQuery(`/games/${board.titleId}/boards/${board.leaderboardId}/card.png`, { asOf }),
      section: '/games',
      islands: ['history'],
      content: (
        <>
          <Head {...{ board, days, path, name, isNow, query }} />
          <section class="card">
            <AsOf input={input} path={path} query={query} all={days?.days ?? []} />
            {found === undefined ? null : <Found found={found} input={input} path={path} />}
            {compared === undefined ? null : <Compared compared={compared} />}
            {set === undefined ? (
              <>
                <Entries
                  {...{ board, best, compared, input }}
                  since={sinceOf(knownAt === undefined ? (changes ?? []) : [], records)}
                />
                <Pager {...pageOf(input.page, board.total, ENTRIES)} path={path} query={query} />
              </>
            ) : (
              <SetThen changes={set} />
            )}
          </section>
          <div class="columns">
            <Record records={records} />
            <Size days={days?.days ?? []} total={board.total} isNow={isNow} />
            <Changes changes={changes ?? []} titleId={board.titleId} board={board.leaderboardId} />
          </div>
        </>
      )
    }
  }
})

type HeadProps = {
  board: Leaderboard
  days: LeaderboardDays | undefined
  path: string
  name: string
  isNow: boolean
  query: Query
}

function Head({ board, days, path, name, isNow, query: { asOf, knownAt } }: HeadProps) {
  const { titleId, gameName, leaderboardId, total, listed } = board
  return (
    <section
      class="head"
      {...(isNow ? { 'data-live-board': `titleId=${titleId}&leaderboardId=${leaderboardId}` } : {})}
    >
      <p>
        <GameLink titleId={titleId} name={gameName} /> ›
      </p>
      <div class="titled">
        <h1>
          <Name>{name}</Name>
        </h1>
        <Tools
          path={path}
          name={`${name} (${gameName})`}
          embed={`/embed/boards/${titleId}/${leaderboardId}`}
          csv={withQuery(`/api/game/${titleId}/leaderboards/${leaderboardId}`, { asOf, knownAt, format: 'csv' })}
        />
      </div>
      <p class="quiet">
        <Facts
          of={[
            plural(total, 'entry', 'entries'),
            days && (
              <>
                first seen <Time at={days.firstSeenAt} />
              </>
            ),
            listed ? 'listed' : 'no longer listed'
          ]}
        />
      </p>
    </section>
  )
}

type AsOfProps = { input: BoardInput; path: string; query: Query; all: LeaderboardDays['days'] }

function AsOf({ input, path, query, all }: AsOfProps) {
  return (
    <div class="as-of">
      <Form action={path} submit="Show">
        <Labelled label="As of" type="date" name="asOf" value={query.asOf?.slice(0, 10)} />
        <label>
          known by <input type="date" name="knownAt" value={query.knownAt?.slice(0, 10)} />
        </label>
        <label>
          compare with{' '}
          <select name="with">
            <option value="">nothing</option>
            {Object.keys(WITH_DAYS).map((each) => (
              <option key={each} value={each} selected={each === input.with}>
                a {each} before
              </option>
            ))}
          </select>
        </label>
        <Labelled label="set from" type="date" name="from" value={query.from?.slice(0, 10)} />
        <Labelled label="to" type="date" name="to" value={query.to?.slice(0, 10)} />
        <Field name="player" value={input.player} label="Find a player" />
        {input.asOf === undefined && input.knownAt === undefined ? null : (
          <a href={withQuery(path, { with: input.with })}>Now</a>
        )}
      </Form>
      {input.asOf === undefined ? null : (
        <p>
          <strong>
            As of <Time at={input.asOf} />
          </strong>
          {input.knownAt === undefined ? ', as known now.' : '.'}
        </p>
      )}
      {input.knownAt === undefined ? null : (
        <p>
          <strong>
            As known at <Time at={input.knownAt} />
          </strong>
          : entries and records. Days, changes and comparisons are as known now.
        </p>
      )}
      {all.length < 2 ? null : (
        <details id="days">
          <summary>Days on which it changed ({count(all.length)})</summary>
          <ol class="days">
            {all
              .toReversed()
              .slice(0, DAYS_SHOWN)
              .map(({ date: day, new: entered, updated, removed }) => (
                <li key={day}>
                  <a
                    href={withQuery(path, { ...query, page: undefined, asOf: `${day}T23:59:59Z` })}
                    rel="nofollow"
                    data-day={day}
                  >
                    {dayText(day)}
                  </a>{' '}
                  <span class="quiet">{plural(entered + updated + removed, 'change')}</span>
                </li>
              ))}
          </ol>
        </details>
      )}
    </div>
  )
}

function pageOfRank(rank: number): number {
  return Math.ceil(Math.max(1, rank) / ENTRIES)
}

function Found({ found, input, path }: { found: EntryMatches; input: BoardInput; path: string }) {
  const here = found.results.filter(({ leaderboard_id }) => leaderboard_id === input.board)
  if (here.length === 0) {
    return <p class="note">{input.player} has no entry on this board now.</p>
  }
  return (
    <p class="note">
      {here.map(({ id, player_name, rank, rating, time_ms, is_time }) => (
        <span key={id}>
          <PlayerLink name={player_name} />: {rank === null ? 'no rank' : `rank ${rank}`},{' '}
          {measureText(rating, time_ms, is_time)}{' '}
          <a href={`${withQuery(path, { page: pageOfRank(rank ?? 1), player: input.player })}#r${rank}`} rel="nofollow">
            show
          </a>{' '}
        </span>
      ))}
    </p>
  )
}

function Compared({ compared: { counts, from, left } }: { compared: LeaderboardComparison }) {
  return (
    <div class="note">
      Since <Time at={from} />:{' '}
      {Object.entries(counts)
        .map(([list, number]) => `${count(number)} ${list === 'came' ? 'new' : list}`)
        .join(', ')}
      .
      {left.length === 0 ? null : (
        <details>
          <summary>Who left</summary>
          {left.slice(0, ENTRIES).map(({ name, previousRank, previousRating }) => (
            <span key={`${name}${previousRank}`}>
              <PlayerLink name={name} /> (#{previousRank}, {previousRating}){' '}
            </span>
          ))}
        </details>
      )}
    </div>
  )
}

/** Since when entries stand, as far as it is known. */
type Since = {
  readonly of: ReadonlyMap<string, string>
  /** The instant before which the others were set; 0 while nothing is known. */
  readonly othersMs: number
  /** Entries from before this instant stand out. */
  readonly longMs: number
}

function sinceOf(changes: LeaderboardChanges, records: LeaderboardRecords | undefined): Since {
  const set = changes.filter(({ changeType }) => changeType !== 'removed').reverse()
  // An entry of the board's first sight may be older than that.
  const sight = records?.records.find(({ fromIsFirstSight }) => fromIsFirstSight)
  const [oldest] = changes.length < CHANGES ? [] : changes.slice(-1)
  return {
    of: new Map(set.map(({ playerName, changedAt }) => [playerName, changedAt])),
    othersMs: msOf(oldest?.changedAt ?? sight?.fromAt ?? '1970-01-01'),
    longMs: msOf(changes[0]?.changedAt ?? '1970-01-01') - LONG_DAYS * DAY_MS
  }
}

function Since({ name, since: { of, othersMs, longMs } }: { name: string; since: Since }) {
  const since = of.get(name)
  const isBefore = since === undefined || msOf(since) <= othersMs
  if (since === undefined && othersMs === 0) return <span class="quiet">before</span>
  return (
    <>
      {isBefore ? <span class="quiet">before </span> : null}
      <span class={(since === undefined ? othersMs : msOf(since)) < longMs ? 'best' : undefined}>
        <Time at={since ?? othersMs} day />
      </span>
    </>
  )
}

type EntriesProps = {
  board: Leaderboard
  best: Leaderboard['entries'][number] | undefined
  compared: LeaderboardComparison | undefined
  since: Since
  input: BoardInput
}

function Entries({ board, best, compared, since, input }: EntriesProps) {
  if (board.entries.length === 0) return <p>No entries{input.asOf === undefined ? ' yet' : ' at this instant'}.</p>
  const isTime = board.entries[0]?.isTime === true
  const marks = marksOf(compared)
  const further = [...new Set(board.entries.flatMap(({ details = {} }) => Object.keys(details)))].slice(0, 3)
  type Entry = Leaderboard['entries'][number]
  return (
    <div id="entries" data-fresh>
      <Table
        label="Entries"
        rows={board.entries}
        attributesOf={({ rank, name }, index) => ({
          // Several entries may share a rank.
          id: rank === board.entries[index - 1]?.rank ? undefined : `r${rank}`,
          class: name === input.player ? 'marked' : undefined
        })}
        columns={[
          ['#Rank', ({ rank }) => rank],
          ['Player', ({ name }) => <PlayerLink name={name} />],
          [isTime ? '#Time' : '#Score', (entry) => measureText(entry.rating, entry.timeMs, entry.isTime)],
          ['#Gap to first', (entry) => gapOf(entry, best)],
          ['Since', ({ name }) => <Since name={name} since={since} />],
          ...further.map((column): Column<Entry> => [column, ({ details = {} }) => details[column]]),
          ...(compared === undefined ? [] : [['Change', ({ name }) => marks.get(name)] satisfies Column<Entry>]),
          ['Compare', ({ name }) => <AddToCompare kind="players" id={name} name={name} />]
        ]}
      />
    </div>
  )
}

/** Entries by the instant at which they were set, also those that later ones have pushed down. */
function SetThen({ changes }: { changes: LeaderboardChanges }) {
  const set = changes.filter(({ changeType }) => changeType !== 'removed')
  if (set.length === 0) return <p>No entry was set in this time.</p>
  return (
    <Table
      label="Entries set in this time"
      rows={set}
      columns={[
        ['Set', ({ changedAt }) => <Time at={changedAt} />],
        ['Player', ({ playerName }) => <PlayerLink name={playerName} />],
        ['#Value', ({ newRating, newTimeMs, isTime }) => measureText(newRating, newTimeMs, isTime)],
        ['#Rank then', ({ newRank }) => newRank]
      ]}
    />
  )
}

function gapOf(entry: Leaderboard['entries'][number], best: Leaderboard['entries'][number] | undefined): string {
  if (best === undefined || entry.rating === best.rating) return ''
  const gap = entry.isTime
    ? gapText(true, entry.timeMs, best.timeMs)
    : gapText(false, Number(entry.rating), Number(best.rating))
  return gap === '' || gap === 'NaN' ? '' : `${entry.isTime ? '+' : '−'}${gap}`
}

function marksOf(compared: LeaderboardComparison | undefined): Map<string, string> {
  const marks = new Map<string, string>()
  const add = (name: string, text: string) =>
    marks.set(name, [marks.get(name) ?? '', text].filter((each) => each !== '').join(', '))
  for (const { name } of compared?.came ?? []) add(name, 'new')
  for (const { name } of compared?.improved ?? []) add(name, 'improved')
  for (const { name, previousRank, newRank } of [...(compared?.rose ?? []), ...(compared?.fell ?? [])]) {
    const by = (previousRank ?? 0) - (newRank ?? 0)
    add(name, `${by > 0 ? '▲' : '▼'} ${Math.abs(by)}`)
  }
  return marks
}

/** The reigns of a board, newest first, and its record as steps. */
export function reignsOf(records: LeaderboardRecords | undefined) {
  const reigns = (records?.records ?? []).toSorted((a, b) => msOf(b.fromAt) - msOf(a.fromAt))
  const values = reigns.map(({ fromAt, ...value }) => ({ ...value, at: fromAt }))
  return { reigns, steps: stepsOf('Record', values, reigns[0]?.isTime === true) }
}

function Record({ records }: { records: LeaderboardRecords | undefined }) {
  const { reigns, steps } = reignsOf(records)
  if (reigns.length === 0) return null
  return (
    <Card title="The record">
      <Steps {...steps} />
      <Table
        label="Reigns"
        rows={reigns.slice(0, REIGNS_SHOWN)}
        columns={[
          ['Record', ({ rating, timeMs, isTime }) => measureText(rating, timeMs, isTime)],
          ['Holder', ({ playerName }) => <PlayerLink name={playerName} />],
          [
            'From',
            ({ fromAt, fromIsFirstSight }) => (
              <>
                {fromIsFirstSight ? 'before ' : ''}
                <Time at={fromAt} day />
              </>
            )
          ],
          [
            '#Held',
            ({ fromAt, toAt }, index) => (toAt === null || index === 0 ? 'still' : spanText(msOf(toAt) - msOf(fromAt)))
          ]
        ]}
      />
      {reigns.length > REIGNS_SHOWN ? <p class="quiet">{plural(reigns.length, 'record')} in all.</p> : null}
    </Card>
  )
}

/** The number of entries over time, counted back from now. */
function Size({ days, total, isNow }: { days: LeaderboardDays['days']; total: number; isNow: boolean }) {
  const [first] = days
  if (!isNow || days.length < 3 || first === undefined) return null
  let size = total
  const sizes = days
    .toReversed()
    .map(({ new: came, removed }) => {
      const after = size
      size += removed - came
      return after
    })
    .reverse()
  const begin = `${count(sizes[0] ?? 0)} entries on ${dayText(first.date)}`
  return (
    <Card title="Size over time">
      <Trend values={sizes} label={`${begin}, ${count(total)} now`} />
      <p class="quiet">
        {begin}, {count(total)} now
      </p>
    </Card>
  )
}

function Changes({ changes, titleId, board }: { changes: LeaderboardChanges; titleId: string; board: string }) {
  return (
    <FeedCard
      title="Changes"
      more={<a href={`/changes?game=${titleId}&board=${board}`}>All</a>}
      rows={changes.slice(0, CHANGES_SHOWN)}
      empty="None since it was first seen."
      row={(change) => (
        <>
          <PlayerLink name={change.playerName} /> {changeText(change)} <ChangeFacts change={change} />
        </>
      )}
    />
  )
}
