import type { Leaderboard, OnlineHistory, Player, TitleSummary } from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { knownTitle } from '../../routes/known-game.js'
import { leaderboard } from '../../routes/leaderboard-entry.js'
import { onlineHistory } from '../../routes/network-count.js'
import { player } from '../../routes/player.js'
import { titleSummary } from '../../routes/title-summary.js'
import { Chart } from '../components/chart.js'
import { historyPart, linesOf, spanParameters } from '../components/history.js'
import { N, Name } from '../components/marks.js'
import { measureText } from '../components/records.js'
import { boardPath, count, gamePath, playerPath } from '../components/text.js'
import { ask, type Page, page, tryAsk, type View } from '../values/page.js'

const theme = oneOf(['light', 'dark']).optional()
const rows = integer({ min: 1, max: 50 }).default(10)

function embed(view: Omit<View, 'isEmbed' | 'content'>, heading: string, content: ComponentChildren): View {
  return {
    ...view,
    isEmbed: true,
    content: (
      <>
        <h1>
          <a href={view.canonical} target="_blank" rel="noopener">
            <Name>{heading}</Name>
          </a>
        </h1>
        {content}
      </>
    )
  }
}

const gameInput = z.object({
  game: text({ example: '4d530064' }),
  theme,
  ...spanParameters(['48h', '30d', '1y', 'all'])
})

const gameEmbed = page({
  name: 'embed-game',
  path: '/embed/games/:game',
  input: gameInput,
  parts: async ({ game, theme: _theme, ...span }: z.infer<typeof gameInput>, context) => {
    const { titleId } = await knownTitle(game, context)
    return {
      title: ask<TitleSummary>(titleSummary, { titleId }),
      history: historyPart({ titleId }, span, context.nowMs)
    }
  },
  view: ({ title, history }, input, { resolved }) =>
    embed(
      { title: title.name, canonical: gamePath(title), theme: input.theme, hasChart: true },
      title.name,
      <>
        <p>
          {title.online === null ? (
            'No data yet'
          ) : (
            <>
              <N of={title.online} live={`title/${title.titleId}`} /> playing now
            </>
          )}
        </p>
        <Chart
          lines={linesOf(input, [[title.name, history, resolved.history]])}
          label={`Players of ${title.name}`}
          live={`title/${title.titleId}`}
        />
      </>
    )
})

const networkInput = z.object({ theme, ...spanParameters(['24h', '7d', '30d', '1y', 'all']) })

const networkEmbed = page({
  name: 'embed-network',
  path: '/embed/network',
  input: networkInput,
  parts: ({ theme: _theme, ...span }: z.infer<typeof networkInput>, { nowMs }) => ({
    day: tryAsk<OnlineHistory>(onlineHistory, { days: 1 }),
    history: historyPart({ metric: 'online' }, span, nowMs)
  }),
  view: ({ day, history }, input, { resolved }) => {
    const last = day?.at(-1)
    return embed(
      { title: 'Players online', canonical: '/', theme: input.theme, hasChart: true },
      'Players online',
      <>
        <p>{last === undefined ? 'No data yet' : <N of={last.online_count} live="network" />}</p>
        <Chart
          lines={linesOf(input, [['Players online', history, resolved.history]])}
          label="Players online"
          live="network"
        />
      </>
    )
  }
})

const boardInput = z.object({
  game: text({ example: '4d530064' }),
  board: integer({ min: 0, max: 4_294_967_295 }),
  theme,
  rows
})

const boardEmbed = page({
  name: 'embed-board',
  path: '/embed/boards/:game/:board',
  input: boardInput,
  parts: ({ game, board, rows: limit }: z.infer<typeof boardInput>) => ({
    board: ask<Leaderboard>(leaderboard, { game, leaderboardId: board, limit })
  }),
  view: ({ board }, input) =>
    embed(
      {
        title: board.name,
        canonical: boardPath({ titleId: board.titleId, name: board.gameName }, board.leaderboardId),
        theme: input.theme
      },
      `${board.name} · ${board.gameName}`,
      <ol>
        {board.entries.map(({ name, rating, timeMs, isTime }, index) => (
          <li key={index}>
            <Name>{name}</Name> {measureText(rating, timeMs, isTime)}
          </li>
        ))}
      </ol>
    )
})

const playerInput = z.object({ name: text({ example: 'ann', max: 100 }), theme, rows })

const playerEmbed = page({
  name: 'embed-player',
  path: '/embed/players/:name',
  input: playerInput,
  parts: ({ name, rows: limit }: z.infer<typeof playerInput>) => ({
    player: ask<Player>(player, { playerName: name, limit })
  }),
  view: ({ player: { boards, total } }, input) =>
    embed(
      { title: input.name, canonical: playerPath(input.name), theme: input.theme },
      `${input.name}: ${count(total)} ${total === 1 ? 'board' : 'boards'}`,
      <ul class="plain">
        {boards.map(({ rank, entries, leaderboardName, gameName, titleId, leaderboardId }) => (
          <li key={`${titleId}/${leaderboardId}/${rank}`}>
            #{rank} of {count(entries)} <Name>{leaderboardName}</Name> (<Name>{gameName}</Name>)
          </li>
        ))}
      </ul>
    )
})

/** One card each, for frames of other pages from 300 × 150. */
export const embeds: readonly Page[] = [gameEmbed, networkEmbed, boardEmbed, playerEmbed]
