import { type LeaderboardChanges, type Player, type RecentRecords, timeText } from '@gamenet/schemas'
import { Name, PlayerLink, Time } from './marks.js'
import type { StepSeries } from './series.js'
import { boardPath, count, groupedBy, msOf } from './text.js'

/** A measure as people write it. */
export function measureText(rating: string | null, timeMs: number | null, isTime: boolean): string {
  if (rating === null) return ''
  if (isTime && timeMs !== null) return timeText(timeMs)
  return /^\d{4,15}$/.test(rating) ? count(Number(rating)) : rating
}

type Valued = { readonly at: string; readonly rating: string | null; readonly timeMs: number | null }

/** Returns the values of a board, newest first, as steps; those that are no numbers are left out. */
export function stepsOf(label: string, values: readonly Valued[], isTime: boolean): StepSeries {
  const points = values.map(({ at, rating, timeMs }) => [msOf(at), isTime ? timeMs : Number(rating)] as const)
  return {
    label,
    points: points.toReversed().filter((point): point is [number, number] => !Number.isNaN(point[1] ?? Number.NaN)),
    textOf: (value) => measureText(String(value), value, isTime)
  }
}

/** Returns how far two measures lie apart: `0.4 s`, `300`; `""` where they cannot be compared. */
export function gapText(isTime: boolean, value: number | null, other: number | null): string {
  if (value === null || other === null) return ''
  const gap = Math.abs(value - other)
  return isTime ? `${(gap / 1000).toFixed(gap < 1000 ? 3 : 1)} s` : count(gap)
}

/** Returns a board's name; not every board has one. */
export function boardName(leaderboardId: number | string, name: string): string {
  return name.trim() || `Board ${leaderboardId}`
}

/** How far an entry lies behind the next better one. */
export function GapToNext({ next, isTime }: Pick<Player['boards'][number], 'next' | 'isTime'>) {
  if (next === null) return <>Leader</>
  return (
    <>
      {gapText(isTime, next.gap, 0)} to <PlayerLink name={next.playerName} />
    </>
  )
}

/** A board by name, with its game. */
export function BoardLink(props: {
  titleId: string
  gameName: string
  leaderboardId: number | string
  leaderboardName: string
}) {
  const { titleId, gameName, leaderboardId, leaderboardName } = props
  return (
    <a href={boardPath({ titleId, name: gameName }, leaderboardId)}>
      <Name>{boardName(leaderboardId, leaderboardName)}</Name>
    </a>
  )
}

/** A board by name, and its game by name. */
export function BoardOfGame(board: Parameters<typeof BoardLink>[0]) {
  return (
    <>
      <BoardLink {...board} /> of <Name>{board.gameName}</Name>
    </>
  )
}

/** A record as a sentence. */
export function RecordLine({ record, hasGame = false }: { record: RecentRecords[number]; hasGame?: boolean }) {
  return (
    <>
      <strong>{measureText(record.rating, record.timeMs, record.isTime)}</strong>{' '}
      <PlayerLink name={record.playerName} /> on {hasGame ? <BoardOfGame {...record} /> : <BoardLink {...record} />}
      <span class="quiet">
        <Beaten record={record} /> · <Time at={record.setAt} ago />
      </span>
    </>
  )
}

function Beaten({ record }: { record: RecentRecords[number] }) {
  const { previousPlayerName, previousTimeMs, previousRating, timeMs, rating, isTime, playerName } = record
  if (previousPlayerName === null) return <>, the first entry seen</>
  const gap = isTime
    ? gapText(true, timeMs, previousTimeMs)
    : gapText(false, Number(rating), previousRating === null ? null : Number(previousRating))
  if (gap === '') return <>, after {previousPlayerName}</>
  return (
    <>
      , {gap} {isTime ? 'faster' : 'more'} than{' '}
      {previousPlayerName === playerName ? 'before' : <PlayerLink name={previousPlayerName} />}
    </>
  )
}

const CHANGES = { new: 'entered', updated: 'improved', removed: 'left' } as const

/** Changes of one board. */
export type BoardSum = LeaderboardChanges[number] & { readonly sums: string }

/** Sums changes up by board, newest first: "14 entered, 3 improved". */
export function changeSums(changes: LeaderboardChanges): BoardSum[] {
  const boards = groupedBy(changes, ({ titleId, leaderboardId }) => `${titleId}/${leaderboardId}`)
  return [...boards.values()].flatMap((of) => {
    const sums = Object.entries(CHANGES).flatMap(([type, text]) => {
      const number = of.filter(({ changeType }) => changeType === type).length
      return number === 0 ? [] : [`${number} ${text}`]
    })
    return of.slice(0, 1).map((newest) => ({ ...newest, sums: sums.join(', ') }))
  })
}

/** The value and age of a change, behind what it says. */
export function ChangeFacts({ change, day = false }: { change: LeaderboardChanges[number]; day?: boolean }) {
  return (
    <span class="quiet">
      {measureText(change.newRating, change.newTimeMs, change.isTime)} ·{' '}
      <Time at={change.changedAt} ago={!day} day={day} />
    </span>
  )
}

/** One change as a sentence. */
export function changeText({ changeType, previousRank, newRank }: LeaderboardChanges[number]): string {
  if (changeType === 'new') return newRank === null ? 'entered' : `entered at rank ${newRank}`
  if (changeType === 'removed') return previousRank === null ? 'left' : `left rank ${previousRank}`
  return previousRank === newRank || previousRank === null || newRank === null
    ? 'improved'
    : `improved, rank ${previousRank} → ${newRank}`
}
