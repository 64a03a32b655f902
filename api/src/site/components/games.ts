import type { OnlineUsers, Peaks, Sparklines, TopGames } from '@gamenet/schemas'

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

type Lists = {
  readonly online: OnlineUsers | undefined
  readonly today?: TopGames | undefined
  readonly yesterday?: TopGames | undefined
  readonly month?: TopGames | undefined
  readonly peaks?: Peaks | undefined
  readonly trends?: Sparklines | undefined
}

/** Means below this are too small for a change to say anything. */
const MOVER_AVERAGE_MIN = 10

/** Returns a row for each game of the newest scrape, most players first. */
export function gameRows({ online, today, yesterday, month, peaks, trends }: Lists): GameRow[] {
  const byId = <Row extends { readonly titleId: string | null }>(rows: readonly Row[] | undefined) =>
    new Map((rows ?? []).map((row) => [row.titleId, row]))
  const [now, before, long, ever, lines] = [
    byId(today),
    byId(yesterday),
    byId(month),
    byId(peaks),
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
        peak: ever.get(titleId)?.peak ?? null,
        average: long.get(titleId)?.average ?? null,
        trend: lines.get(titleId)?.online ?? []
      }
    })
    .sort((a, b) => b.online - a.online || a.name.localeCompare(b.name, 'en'))
}
