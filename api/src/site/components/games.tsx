import type { OnlineUsers, Peaks, Sparklines, TopGames } from '@gamenet/schemas'
import { peaks } from '../../routes/calendar.js'
import { sparklines } from '../../routes/sparkline.js'
import { onlineUsers, topGames } from '../../routes/title-count.js'
import { iso } from '../values/iso.js'
import { type Answers, ask, tryAsk } from '../values/page.js'
import { Trend } from './chart.js'
import { GameLink, N, Share } from './marks.js'
import type { Column } from './table.js'
import { DAY_MS, HOUR_MS } from './text.js'

/** What lists of games show of each. */
export type GameRow = {
  readonly titleId: string
  readonly name: string
  readonly image: string
  readonly publisher: string
  readonly online: number
  readonly lobbies: number
  /** Mean of the last 24 hours against that of the 24 hours before, as a share; null without both. */
  readonly change: number | null
  readonly peak24h: number | null
  readonly peak: number | null
  /** Mean of 30 days. */
  readonly average: number | null
  readonly trend: readonly (number | null)[]
}

/** The parts of a page that lists games. */
export function gamesParts(nowMs: number, trendDays: number) {
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
  const days = (from: number, to: number) =>
    tryAsk<TopGames>(topGames, { from: iso(hourMs - from * DAY_MS), to: iso(hourMs - to * DAY_MS) })
  return {
    online: ask<OnlineUsers>(onlineUsers),
    peaks: tryAsk<Peaks>(peaks),
    today: days(1, 0),
    yesterday: days(2, 1),
    trends: tryAsk<Sparklines>(sparklines, { days: trendDays })
  }
}

type Lists = Answers<ReturnType<typeof gamesParts>> & { readonly month?: TopGames | undefined }

/** Means below this are too small for a change to say anything. */
const MOVER_AVERAGE_MIN = 10

/** Returns a row for each game of the newest scrape, most players first. */
export function gameRows({ online, today, yesterday, month, peaks: ever, trends }: Lists): GameRow[] {
  const byId = <Row extends { readonly titleId: string | null }>(rows: readonly Row[] | undefined) =>
    new Map((rows ?? []).map((row) => [row.titleId, row]))
  const [now, before, long, highest, lines] = [
    byId(today),
    byId(yesterday),
    byId(month),
    byId(ever),
    byId(trends?.titles)
  ]
  return Object.entries(online ?? {})
    .map(([name, game]): GameRow => {
      const { titleId, image, publisher, activeLobbies } = game
      const [a, b] = [now.get(titleId), before.get(titleId)]
      return {
        ...{ titleId, name, image, publisher, online: game.online, lobbies: activeLobbies },
        change: a === undefined || b === undefined || b.average < MOVER_AVERAGE_MIN ? null : a.average / b.average - 1,
        peak24h: a?.peak ?? null,
        peak: highest.get(titleId)?.peak ?? null,
        average: long.get(titleId)?.average ?? null,
        trend: lines.get(titleId)?.online ?? []
      }
    })
    .sort((a, b) => b.online - a.online || a.name.localeCompare(b.name, 'en'))
}

const number = (value: number | null) => (value === null ? '' : <N of={value} />)

/** The columns of lists of games, by the values by which they are sorted. */
export const GAME_COLUMNS = {
  name: ['Game', (game) => <GameLink {...game} />, 'name'],
  online: ['#Playing', ({ online, titleId }) => <N of={online} live={`title/${titleId}`} />, 'online'],
  change: ['#24 h', ({ change }) => <Share of={change} />, 'change'],
  peak24h: ['#24 h peak', ({ peak24h }) => number(peak24h), 'peak24h'],
  average: ['#30 d mean', ({ average }) => number(average), 'average'],
  peak: ['#All-time peak', ({ peak }) => number(peak), 'peak'],
  lobbies: ['#Lobbies', ({ lobbies }) => number(lobbies), 'lobbies'],
  publisher: ['Publisher', ({ publisher }) => publisher, 'publisher']
} satisfies Readonly<Partial<Record<keyof GameRow, Column<GameRow>>>>

/** The column of trend lines. */
export const trendColumn = (days: number): Column<GameRow> => [
  `${days} days`,
  ({ trend, name }) => <Trend values={trend} label={`${days} days of ${name}`} />
]
