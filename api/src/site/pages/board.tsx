import type {
  EntryMatches,
  Leaderboard,
  LeaderboardChanges,
  LeaderboardComparison,
  LeaderboardDays,
  LeaderboardRecords
} from '@gamenet/schemas'
import { z } from 'zod'
import { instant, integer, oneOf, text } from '../../request/parameters.js'
import { requirePast } from '../../routes/known-game.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { leaderboardComparison } from '../../routes/leaderboard-comparison.js'
import { leaderboardDays } from '../../routes/leaderboard-day.js'
import { leaderboard } from '../../routes/leaderboard-entry.js'
import { searchPlayers } from '../../routes/player-entry.js'
import { leaderboardRecords } from '../../routes/record-history.js'
import { Trend } from '../components/chart.js'
import { addressedTitle } from '../components/game-address.js'
import { iso, isoDay } from '../components/history.js'
import { Card, N, Name, Pager, PlayerLink, Table, Time, Watch } from '../components/marks.js'
import { pageOf } from '../components/page-number.js'
import { changeText, gapText, measureText } from '../components/records.js'
import { Staircase } from '../components/staircase.js'
import {
  boardPath,
  count,
  DAY_MS,
  dayText,
  gamePath,
  instantText,
  msOf,
  plural,
  spanText,
  withQuery
} from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const ENTRIES = 50
const CHANGES = 500
const CHANGES_SHOWN = 25
const REIGNS_SHOWN = 10
const DAYS_SHOWN = 120
const WITH_DAYS = { day: 1, week: 7, month: 30, year: 365 } as const

const boardInput = z.object({
  game: text({ example: '4d530064' }),
  slug: text({ example: 'halo-2' }),
  board: integer({ min: 0, max: 4_294_967_295 }),
  asOf: instant().optional(),
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
    const query = queryOf(input)
    const { titleId } = await addressedTitle({ game, slug }, context, { rest: `/boards/${board}`, query })
    const { asOf } = input
    if (asOf !== undefined) requirePast('asOf', asOf, context.nowMs)
    const of = { game: titleId, leaderboardId: board }
    const at = asOf === undefined ? undefined : new Date(asOf).toISOString()
    const nowMs = asOf ?? Math.floor(context.nowMs / 60_000) * 60_000
    const first = { ...of, asOf: at }
    return {
      board: ask<Leaderboard>(leaderboard, { ...first, limit: ENTRIES, offset: (input.page - 1) * ENTRIES }),
      top: ask<Leaderboard>(leaderboard, { ...first, limit: 1 }),
      records: tryAsk<LeaderboardRecords>(leaderboardRecords, { ...of, limit: 500 }),
      changes: tryAsk<LeaderboardChanges>(leaderboardChanges, { ...of, limit: CHANGES }),
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
  view: ({ board, top, records, changes, days, compared, found }, input) => {
    const path = boardPath({ titleId: board.titleId, name: board.gameName }, board.leaderboardId)
    const query = queryOf(input)
    const number = pageOf(input.page, board.total, ENTRIES)
    const name = board.name.trim() || `Board ${board.leaderboardId}`
    const on = input.asOf === undefined ? '' : ` on ${instantText(input.asOf)} UTC`
    const [best] = top.entries
    return {
      title: `${name}${on} · ${board.gameName}`,
      description:
        best === undefined
          ? `No entries${on}.`
          : `Record${on}: ${measureText(best.rating, best.timeMs, best.isTime)} by ${best.name}. ` +
            `${plural(board.total, 'entry', 'entries')}.`,
      canonical: input.asOf === undefined ? path : withQuery(path, { asOf: query.asOf }),
      isUnlisted: Object.values(query).some((value) => value !== undefined),
      picture: `/games/${board.titleId}/boards/${board.leaderboardId}/card.png`,
      section: '/games',
      islands: ['history'],
      content: (
        <>
          <Head board={board} days={days} path={path} name={name} isNow={input.asOf === undefined} />
          <section class="card">
            <AsOf input={input} path={path} all={days?.days ?? []} />
            {found === undefined ? null : <Found found={found} input={input} path={path} />}
            {compared === undefined ? null : <Compared compared={compared} />}
            <Entries {...{ board, best, compared, input }} changes={changes ?? []} firstMs={firstSightOf(records)} />
            <Pager {...number} hrefOf={(to) => withQuery(path, { ...query, page: to === 1 ? undefined : to })} />
          </section>
          <div class="columns">
            <Record records={records} />
            <Size days={days?.days ?? []} total={board.total} isNow={input.asOf === undefined} />
            <Changes changes={changes ?? []} titleId={board.titleId} board={board.leaderboardId} />
          </div>
        </>
      )
    }
  }
})

function queryOf({ asOf, with: compared, page: number, player }: Omit<BoardInput, 'game' | 'slug' | 'board'>) {
  return {
    asOf: asOf === undefined ? undefined : iso(asOf),
    with: compared,
    page: number === 1 ? undefined : number,
    player
  }
}

type HeadProps = {
  board: Leaderboard
  days: LeaderboardDays | undefined
  path: string
  name: string
  isNow: boolean
}

function Head({ board, days, path, name, isNow }: HeadProps) {
  const { titleId, gameName, leaderboardId, total, listed } = board
  return (
    <section
      class="head"
      {...(isNow ? { 'data-live-board': `titleId=${titleId}&leaderboardId=${leaderboardId}` } : {})}
    >
      <p>
        <a href={gamePath({ titleId, name: gameName })}>
          <Name>{gameName}</Name>
        </a>{' '}
        ›
      </p>
      <div class="titled">
        <h1>
          <Name>{name}</Name>
        </h1>
        <div class="tools">
          <Watch href={path} name={`${name} (${gameName})`} />
          <button type="button" class="share" hidden>
            Share
          </button>
          <a href={`/docs/guide/embed?path=${encodeURIComponent(`/embed/boards/${titleId}/${leaderboardId}`)}`}>
            Embed
          </a>
          <a href={`/api/game/${titleId}/leaderboards/${leaderboardId}?format=csv`} rel="nofollow">
            CSV
          </a>
        </div>
      </div>
      <p class="quiet">
        {plural(total, 'entry', 'entries')}
        {days === undefined ? null : (
          <>
            {' '}
            · first seen <Time at={days.firstSeenAt} />
          </>
        )}{' '}
        · {listed ? 'listed' : 'no longer listed'}
      </p>
    </section>
  )
}

function AsOf({ input, path, all }: { input: BoardInput; path: string; all: LeaderboardDays['days'] }) {
  const days = all.toReversed().slice(0, DAYS_SHOWN)
  const asOf = input.asOf === undefined ? undefined : isoDay(input.asOf)
  return (
    <div class="as-of">
      <form action={path} class="row">
        <label>
          As of <input type="date" name="asOf" value={asOf} />
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
        <label>
          find a player <input name="player" value={input.player} maxlength={100} />
        </label>
        <button type="submit">Show</button>
        {input.asOf === undefined ? null : <a href={withQuery(path, { with: input.with })}>Now</a>}
      </form>
      {input.asOf === undefined ? null : (
        <p>
          <strong>
            As of <Time at={input.asOf} />
          </strong>
          , as it was seen then.
        </p>
      )}
      {days.length < 2 ? null : (
        <details id="days">
          <summary>Days on which it changed ({count(all.length)})</summary>
          <ol class="days">
            {days.map(({ date: day, ...sums }) => (
              <li key={day}>
                <a
                  href={withQuery(path, { ...queryOf({ ...input, page: 1 }), asOf: `${day}T23:59:59Z` })}
                  rel="nofollow"
                  data-day={day}
                >
                  {dayText(day)}
                </a>{' '}
                <span class="quiet">{plural(sums.new + sums.updated + sums.removed, 'change')}</span>
              </li>
            ))}
          </ol>
        </details>
      )}
    </div>
  )
}

function Found({ found, input, path }: { found: EntryMatches; input: BoardInput; path: string }) {
  const here = found.results.filter(({ leaderboard_id }) => leaderboard_id === input.board)
  if (here.length === 0) {
    return <p class="note">{input.player} has no entry on this board now.</p>
  }
  return (
    <p class="note">
      {here.map(({ id, player_name, rank, rating, time_ms, is_time }) => {
        const number = Math.ceil(Math.max(1, rank ?? 1) / ENTRIES)
        return (
          <span key={id}>
            <PlayerLink name={player_name} />: {rank === null ? 'no rank' : `rank ${rank}`},{' '}
            {measureText(rating, time_ms, is_time)}{' '}
            <a href={`${withQuery(path, { page: number, player: input.player })}#r${rank}`} rel="nofollow">
              show
            </a>{' '}
          </span>
        )
      })}
    </p>
  )
}

function Compared({ compared: { counts, from, left } }: { compared: LeaderboardComparison }) {
  const texts = [
    [counts.came, 'new'],
    [counts.left, 'left'],
    [counts.rose, 'rose'],
    [counts.fell, 'fell'],
    [counts.improved, 'improved']
  ] as const
  return (
    <div class="note">
      Since <Time at={from} />: {texts.map(([number, text]) => `${count(number)} ${text}`).join(', ')}.
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

type EntriesProps = {
  board: Leaderboard
  best: Leaderboard['entries'][number] | undefined
  compared: LeaderboardComparison | undefined
  changes: LeaderboardChanges
  input: BoardInput
  firstMs: number
}

/** When the board was first seen, if its entries may be older; else 0. */
function firstSightOf(records: LeaderboardRecords | undefined): number {
  const sight = records?.records.find(({ fromIsFirstSight }) => fromIsFirstSight)
  return sight === undefined ? 0 : msOf(sight.fromAt)
}

function Entries({ board, best, compared, changes, input, firstMs }: EntriesProps) {
  if (board.entries.length === 0) return <p>No entries{input.asOf === undefined ? ' yet' : ' at this instant'}.</p>
  const untilMs = input.asOf ?? Number.POSITIVE_INFINITY
  const sinceOf = new Map<string, string>()
  for (const { playerName, changeType, changedAt } of changes) {
    if (changeType !== 'removed' && msOf(changedAt) <= untilMs && !sinceOf.has(playerName))
      sinceOf.set(playerName, changedAt)
  }
  const isTime = board.entries[0]?.isTime === true
  const marks = marksOf(compared)
  const further = [...new Set(board.entries.flatMap(({ details = {} }) => Object.keys(details)))].slice(0, 3)
  const head = ['#Rank', 'Player', isTime ? '#Time' : '#Score', '#Gap to first', 'Since', ...further]
  return (
    <div id="entries" data-fresh>
      <Table label="Entries" head={compared === undefined ? head : [...head, 'Change']}>
        {board.entries.map((entry, index) => {
          const { rank, name, rating, timeMs, details = {} } = entry
          const since = sinceOf.get(name)
          return (
            <tr key={index} id={`r${rank}`} class={name === input.player ? 'marked' : undefined}>
              <td class="number">{rank}</td>
              <th scope="row">
                <PlayerLink name={name} />
              </th>
              <td class="number">{measureText(rating, timeMs, entry.isTime)}</td>
              <td class="number">{gapOf(entry, best)}</td>
              <td>
                {since === undefined || msOf(since) <= firstMs ? <span class="quiet">before </span> : null}
                {since === undefined && firstMs === 0 ? null : <Time at={since ?? firstMs} day />}
              </td>
              {further.map((column) => (
                <td key={column}>{details[column]}</td>
              ))}
              {compared === undefined ? null : <td>{marks.get(name) ?? ''}</td>}
            </tr>
          )
        })}
      </Table>
    </div>
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
  for (const { name, previousRank, newRank } of compared?.rose ?? [])
    add(name, `▲ ${(previousRank ?? 0) - (newRank ?? 0)}`)
  for (const { name, previousRank, newRank } of compared?.fell ?? [])
    add(name, `▼ ${(newRank ?? 0) - (previousRank ?? 0)}`)
  return marks
}

function Record({ records }: { records: LeaderboardRecords | undefined }) {
  const reigns = (records?.records ?? []).toSorted((a, b) => msOf(b.fromAt) - msOf(a.fromAt))
  if (reigns.length === 0) return null
  return (
    <Card title="The record">
      <Staircase records={reigns.toReversed()} />
      <Table label="Reigns" head={['Record', 'Holder', 'From', '#Held']}>
        {reigns
          .slice(0, REIGNS_SHOWN)
          .map(({ playerName, rating, timeMs, isTime, fromAt, toAt, fromIsFirstSight }, index) => (
            <tr key={`${fromAt}${playerName}${rating}`}>
              <th scope="row">{measureText(rating, timeMs, isTime)}</th>
              <td>
                <PlayerLink name={playerName} />
              </td>
              <td>
                {fromIsFirstSight ? 'before ' : ''}
                <Time at={fromAt} day />
              </td>
              <td class="number">{toAt === null || index === 0 ? 'still' : spanText(msOf(toAt) - msOf(fromAt))}</td>
            </tr>
          ))}
      </Table>
      {reigns.length > REIGNS_SHOWN ? <p class="quiet">{plural(reigns.length, 'record')} in all.</p> : null}
    </Card>
  )
}

/** The number of entries over time, counted back from now. */
function Size({ days, total, isNow }: { days: LeaderboardDays['days']; total: number; isNow: boolean }) {
  if (!isNow || days.length < 3) return null
  let size = total
  const points = days
    .toReversed()
    .map(({ date, new: came, removed }): [number, number] => {
      const point: [number, number] = [msOf(date), size]
      size += removed - came
      return point
    })
    .reverse()
  return (
    <Card title="Size over time">
      <Trend
        values={points.map(([, value]) => value)}
        label={`From ${count(points[0]?.[1] ?? 0)} to ${count(total)} entries`}
      />
      <p class="quiet">
        {count(points[0]?.[1] ?? 0)} entries on {dayText(points[0]?.[0] ?? 0)}, {count(total)} now
      </p>
    </Card>
  )
}

function Changes({ changes, titleId, board }: { changes: LeaderboardChanges; titleId: string; board: string }) {
  const shown = changes.slice(0, CHANGES_SHOWN)
  return (
    <Card title="Changes" more={<a href={`/changes?game=${titleId}&board=${board}`}>All</a>}>
      {shown.length === 0 ? <p class="quiet">None since it was first seen.</p> : null}
      <ul class="plain feed">
        {shown.map((change) => (
          <li key={change.id}>
            <PlayerLink name={change.playerName} /> {changeText(change)}{' '}
            <span class="quiet">
              {measureText(change.newRating, change.newTimeMs, change.isTime)} <Time at={change.changedAt} ago />
            </span>
          </li>
        ))}
      </ul>
      {changes.length === 0 ? null : (
        <p class="quiet">
          <N of={changes.length} />
          {changes.length === CHANGES ? ' or more' : ''} in all.
        </p>
      )}
    </Card>
  )
}
