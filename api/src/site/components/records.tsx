import { type LeaderboardChanges, type RecentRecords, timeText } from '@gamenet/schemas'
import { Name, PlayerLink, Time } from './marks.js'
import { boardPath, count, groupedBy } from './text.js'

/** A measure as people write it. */
export function measureText(rating: string | null, timeMs: number | null, isTime: boolean): string {
  if (rating === null) return ''
  if (isTime && timeMs !== null) return timeText(timeMs)
  return /^\d{4,15}$/.test(rating) ? count(Number(rating)) : rating
}

/** Returns how far two measures lie apart: `0.4 s`, `300`; `""` where they cannot be compared. */
export function gapText(isTime: boolean, value: number | null, other: number | null): string {
  if (value === null || other === null) return ''
  const gap = Math.abs(value - other)
  return isTime ? `${(gap / 1000).toFixed(gap < 1000 ? 3 : 1)} s` : count(gap)
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
      <Name>{leaderboardName.trim() || `Board ${leaderboardId}`}</Name>
    </a>
  )
}

/** Records as sentences, newest first. */
export function RecordList({ records, hasGame = false }: { records: RecentRecords; hasGame?: boolean }) {
  if (records.length === 0) return <p class="quiet">None yet.</p>
  return (
    <ul class="plain feed">
      {records.map((record) => (
        <li key={`${record.titleId}/${record.leaderboardId}/${record.setAt}/${record.playerName}/${record.rating}`}>
          <strong>{measureText(record.rating, record.timeMs, record.isTime)}</strong>{' '}
          <PlayerLink name={record.playerName} /> on <BoardLink {...record} />
          {hasGame ? (
            <>
              {' '}
              of <Name>{record.gameName}</Name>
            </>
          ) : null}
          <span class="quiet">
            <Beaten record={record} /> · <Time at={record.setAt} ago />
          </span>
        </li>
      ))}
    </ul>
  )
}

function Beaten({ record }: { record: RecentRecords[number] }) {
  const { previousPlayerName, previousTimeMs, previousRating, timeMs, rating, isTime, playerName } = record
  if (previousPlayerName === null) return <>, the first entry seen</>
  const gap = isTime
    ? gapText(true, timeMs, previousTimeMs)
    : gapText(false, Number(rating), previousRating === null ? null : Number(previousRating))
  const than =
    previousPlayerName === playerName ? (
      'than before'
    ) : (
      <>
        than <PlayerLink name={previousPlayerName} />
      </>
    )
  return gap === '' ? (
    <>, after {previousPlayerName}</>
  ) : (
    <>
      , {gap} {isTime ? 'faster' : 'more'} {than}
    </>
  )
}

const CHANGES = { new: 'entered', updated: 'improved', removed: 'left' } as const

/** Changes summed up by board: "14 entered, 3 improved". */
export function ChangeSums({ changes, limit = 6 }: { changes: LeaderboardChanges; limit?: number }) {
  const boards = groupedBy(changes, ({ titleId, leaderboardId }) => `${titleId}/${leaderboardId}`)
  if (boards.size === 0) return <p class="quiet">None yet.</p>
  return (
    <ul class="plain feed">
      {[...boards.values()].slice(0, limit).map((of) => {
        const [first] = of
        if (first === undefined) return null
        const sums = Object.entries(CHANGES).flatMap(([type, text]) => {
          const number = of.filter(({ changeType }) => changeType === type).length
          return number === 0 ? [] : [`${number} ${text}`]
        })
        return (
          <li key={first.id}>
            <BoardLink {...first} /> of <Name>{first.gameName}</Name>
            <span class="quiet">
              : {sums.join(', ')} · <Time at={first.changedAt} ago />
            </span>
          </li>
        )
      })}
    </ul>
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
