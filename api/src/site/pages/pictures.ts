import type { Leaderboard, OnlineHistory, Peaks, Player, TitleSummary } from '@gamenet/schemas'
import { z } from 'zod'
import type { ResolveContext } from '../../answers/endpoint.js'
import { integer, text } from '../../request/parameters.js'
import { peaks } from '../../routes/calendar.js'
import { knownTitle } from '../../routes/known-game.js'
import { leaderboard } from '../../routes/leaderboard-entry.js'
import { player } from '../../routes/player.js'
import { titleSummary } from '../../routes/title-summary.js'
import { historyPart, linesOf, spanParameters } from '../components/history.js'
import { measureText } from '../components/records.js'
import { count, dayText, plural } from '../components/text.js'
import { badgeDrawing, cardDrawing, chartDrawing } from '../pictures/drawings.js'
import { ask, type Page, page, tryAsk } from '../values/page.js'

const RANGES = ['48h', '30d', '1y', 'all'] as const
const gameInput = z.object({ game: text({ example: '4d530064' }), ...spanParameters(RANGES) })
type GameInput = z.infer<typeof gameInput>

async function gameParts({ game, ...span }: GameInput, context: ResolveContext) {
  const { titleId } = await knownTitle(game, context)
  return {
    title: ask<TitleSummary>(titleSummary, { titleId }),
    history: historyPart({ titleId }, span, context.nowMs)
  }
}

const nowText = ({ online }: TitleSummary): string => (online === null ? 'no data' : `${count(online)} playing`)

const gameChart = page({
  name: 'picture-game-chart',
  path: '/games/:game/chart.svg',
  input: gameInput,
  parts: gameParts,
  view: ({ title, history }, input, { resolved }) => ({
    svg: chartDrawing(linesOf(input, [[title.name, history, resolved.history]]), `${title.name}: players`)
  })
})

const gameBadge = page({
  name: 'picture-game-badge',
  path: '/games/:game/badge.svg',
  input: z.object({ game: text({ example: '4d530064' }) }),
  parts: async ({ game }: { game: string }, context) => ({
    title: ask<TitleSummary>(titleSummary, { titleId: (await knownTitle(game, context)).titleId })
  }),
  view: ({ title }) => ({ svg: badgeDrawing(title.name, nowText(title)) })
})

const gameCard = page({
  name: 'picture-game-card',
  path: '/games/:game/card.png',
  input: gameInput,
  parts: gameParts,
  view: ({ title, history }, input, { resolved }) => ({
    svg: cardDrawing({
      title: title.name,
      value: nowText(title),
      lines:
        title.peak === null || title.peakAt === null
          ? []
          : [`24 h peak ${count(title.peak24h ?? 0)} · all-time ${count(title.peak)} (${dayText(title.peakAt)})`],
      chart: linesOf(input, [[title.name, history, resolved.history]])
    })
  })
})

const boardInput = z.object({
  game: text({ example: '4d530064' }),
  board: integer({ min: 0, max: 4_294_967_295 })
})

function boardParts({ game, board }: z.infer<typeof boardInput>) {
  return { board: ask<Leaderboard>(leaderboard, { game, leaderboardId: board, limit: 5 }) }
}

function recordText({ entries: [first] }: Leaderboard): string {
  return first === undefined ? 'no entries' : `${measureText(first.rating, first.timeMs, first.isTime)} ${first.name}`
}

const boardBadge = page({
  name: 'picture-board-badge',
  path: '/games/:game/boards/:board/badge.svg',
  input: boardInput,
  parts: boardParts,
  view: ({ board }) => ({ svg: badgeDrawing(board.name, recordText(board)) })
})

const boardCard = page({
  name: 'picture-board-card',
  path: '/games/:game/boards/:board/card.png',
  input: boardInput,
  parts: boardParts,
  view: ({ board }) => ({
    svg: cardDrawing({
      title: `${board.name} · ${board.gameName}`,
      value: recordText(board),
      lines: [
        ...board.entries
          .slice(1)
          .map(({ rank, name, rating, timeMs, isTime }) => `${rank}. ${name}  ${measureText(rating, timeMs, isTime)}`),
        plural(board.total, 'entry', 'entries')
      ]
    })
  })
})

const playerInput = z.object({ name: text({ example: 'ann', max: 100 }) })

function playerParts({ name }: { name: string }) {
  return { player: ask<Player>(player, { playerName: name, limit: 5 }) }
}

const playerBadge = page({
  name: 'picture-player-badge',
  path: '/players/:name/badge.svg',
  input: playerInput,
  parts: playerParts,
  view: ({ player: { total } }, { name }) => ({ svg: badgeDrawing(name, plural(total, 'board')) })
})

const playerCard = page({
  name: 'picture-player-card',
  path: '/players/:name/card.png',
  input: playerInput,
  parts: playerParts,
  view: ({ player: { total, boards } }, { name }) => ({
    svg: cardDrawing({
      title: name,
      value: plural(total, 'board'),
      lines: boards.map(({ rank, leaderboardName, gameName }) => `#${rank} ${leaderboardName} (${gameName})`)
    })
  })
})

const siteCard = page({
  name: 'picture-card',
  path: '/card.png',
  input: z.object(spanParameters(['7d', '30d'])),
  parts: (input, { nowMs }) => ({
    day: tryAsk<Peaks>(peaks),
    history: historyPart({ metric: 'online' }, input, nowMs)
  }),
  view: ({ day = [], history }, input, { resolved }) => {
    const last = (history as OnlineHistory | undefined)?.at(-1)
    const network = day.find(({ titleId, name }) => titleId === null && name === 'online')
    return {
      svg: cardDrawing({
        title: 'Players online',
        value: last === undefined ? 'Gamenet Stats' : count(last.online_count),
        lines: network === undefined ? [] : [`all-time peak ${count(network.peak)} (${dayText(network.peakAt)})`],
        chart: linesOf(input, [['Players', history, resolved.history]])
      })
    }
  }
})

/** Charts, badges and previews, as addresses of their own. */
export const pictures: readonly Page[] = [
  gameChart,
  gameBadge,
  gameCard,
  boardBadge,
  boardCard,
  playerBadge,
  playerCard,
  siteCard
]
