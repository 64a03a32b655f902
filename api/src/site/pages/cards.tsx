import type {
  Leaderboard,
  LeaderboardChanges,
  LeaderboardRecords,
  OnlineHistory,
  Peaks,
  Player,
  TitleSummary
} from '@gamenet/schemas'
import { z } from 'zod'
import { instant, integer, oneOf, text } from '../../request/parameters.js'
import { peaks } from '../../routes/calendar.js'
import { knownTitle } from '../../routes/known-game.js'
import { leaderboard } from '../../routes/leaderboard-entry.js'
import { onlineHistory } from '../../routes/network-count.js'
import { player, playerHistory } from '../../routes/player.js'
import { leaderboardRecords } from '../../routes/record-history.js'
import { titleSummary } from '../../routes/title-summary.js'
import { Chart } from '../components/chart.js'
import { historyPart, linesOf, spanParameters } from '../components/history.js'
import { N, Name } from '../components/marks.js'
import { boardName, measureText, stepsOf } from '../components/records.js'
import type { Line, StepSeries } from '../components/series.js'
import { boardPath, count, dayText, gamePath, instantText, playerPath, plural, withQuery } from '../components/text.js'
import { badgeDrawing, cardDrawing, chartDrawing } from '../pictures/drawings.js'
import { ask, type Page, type Parts, page, tryAsk, type View } from '../values/page.js'
import { reignsOf } from './board.js'
import { changedEntries, requireSeen } from './player.js'

/*
 * card   the few facts by which other pages show a game, board, player or the network: in a frame (embed), as a badge,
 *        as a chart, or as the picture of a preview
 */

type CardFacts = {
  readonly title: string
  /** The page that says more. */
  readonly path: string
  readonly value: string
  /** A number that the stream keeps current in frames. */
  readonly live?: { readonly of: number; readonly name: string }
  readonly lines: readonly string[]
  readonly chart?: readonly Line[]
  readonly steps?: StepSeries
}

type Subject<Input, Of extends Parts> = Pick<Page<Input, Of>, 'name' | 'input' | 'parts'> & {
  /** Of the frame, and of what stands before `badge.svg`. */
  readonly embed: string
  readonly pictures: string
  readonly facts: (...given: Parameters<Page<Input, Of>['view']>) => CardFacts
}

const VIEWS = {
  'badge.svg': badgeDrawing,
  'chart.svg': chartDrawing,
  'card.png': cardDrawing
} as const

/** Returns the frame of a subject and its pictures. */
function cardsOf<Input extends { readonly theme?: View['theme'] }, Of extends Parts>(
  subject: Subject<Input, Of>
): Page[] {
  const { name, input, parts, facts } = subject
  return [
    page<Input, Of>({
      name: `embed-${name}`,
      path: subject.embed,
      input,
      parts,
      view: (answers, given, context) => framed(facts(answers, given, context), given.theme)
    }),
    ...Object.entries(VIEWS).map(([kind, draw]) =>
      page<Input, Of>({
        name: `picture-${name}-${kind.replace(/\..*/, '')}`,
        path: `${subject.pictures}/${kind}`,
        input,
        parts,
        view: (...given) => ({ svg: draw(facts(...given)) })
      })
    )
  ]
}

function framed({ title, path, value, live, lines, chart }: CardFacts, theme: View['theme']): View {
  return {
    title,
    canonical: path,
    theme,
    isEmbed: true,
    isUnlisted: true,
    hasChart: chart !== undefined,
    content: (
      <>
        <h1>
          <a href={path} target="_blank" rel="noopener">
            <Name>{title}</Name>
          </a>
        </h1>
        <p>
          {live === undefined ? null : <N of={live.of} live={live.name} />}
          {live === undefined ? value : value.slice(count(live.of).length)}
        </p>
        {chart === undefined ? (
          <ul class="plain">
            {lines.map((line, index) => (
              <li key={index}>
                <Name>{line}</Name>
              </li>
            ))}
          </ul>
        ) : (
          <Chart lines={chart} label={`Players: ${title}`} {...(live === undefined ? {} : { live: live.name })} />
        )}
      </>
    )
  }
}

const theme = oneOf(['light', 'dark']).optional()
const rows = integer({ min: 1, max: 50 }).default(10)
const peakText = (name: string, peak: number, peakAt: string) => `${name} ${count(peak)} (${dayText(peakAt)})`

const games = cardsOf({
  name: 'game',
  embed: '/embed/games/:game',
  pictures: '/games/:game',
  input: z.object({ game: text({ example: '4d530064' }), theme, ...spanParameters(['48h', '30d', '1y', 'all']) }),
  parts: async ({ game, ...span }, context) => {
    const { titleId } = await knownTitle(game, context)
    return {
      title: ask<TitleSummary>(titleSummary, { titleId }),
      history: historyPart({ titleId }, span, context.nowMs)
    }
  },
  facts: ({ title, history }, input, { resolved }) => {
    const { online, titleId, peak24h, peak, peakAt } = title
    return {
      title: title.name,
      path: gamePath(title),
      value: online === null ? 'No data yet' : `${count(online)} playing`,
      ...(online === null ? {} : { live: { of: online, name: `title/${titleId}` } }),
      lines:
        peak === null || peakAt === null
          ? []
          : [`24 h peak ${count(peak24h ?? 0)} · ${peakText('all-time', peak, peakAt)}`],
      chart: linesOf(input, [[title.name, history, resolved.history]])
    }
  }
})

const network = cardsOf({
  name: 'network',
  embed: '/embed/network',
  pictures: '',
  input: z.object({ theme, ...spanParameters(['24h', '7d', '30d', '1y', 'all']) }),
  parts: (span, { nowMs }) => ({
    day: tryAsk<OnlineHistory>(onlineHistory, { days: 1 }),
    highest: tryAsk<Peaks>(peaks),
    history: historyPart({ metric: 'online' }, span, nowMs)
  }),
  facts: ({ day, highest = [], history }, input, { resolved }) => {
    const of = day?.at(-1)?.online_count
    const ever = highest.find(({ titleId, name }) => titleId === null && name === 'online')
    return {
      title: 'Players online',
      path: '/',
      value: of === undefined ? 'No data yet' : count(of),
      ...(of === undefined ? {} : { live: { of, name: 'network' } }),
      lines: ever === undefined ? [] : [peakText('all-time peak', ever.peak, ever.peakAt)],
      chart: linesOf(input, [['Players online', history, resolved.history]])
    }
  }
})

const boards = cardsOf({
  name: 'board',
  embed: '/embed/boards/:game/:board',
  pictures: '/games/:game/boards/:board',
  input: z.object({
    game: text({ example: '4d530064' }),
    board: integer({ min: 0, max: 4_294_967_295 }),
    asOf: instant().optional(),
    theme,
    rows
  }),
  parts: ({ game, board, rows: limit }, { query: { asOf } }) => ({
    board: ask<Leaderboard>(leaderboard, { game, leaderboardId: board, asOf, limit }),
    records: tryAsk<LeaderboardRecords>(leaderboardRecords, { game, leaderboardId: board, limit: 500 })
  }),
  facts: ({ board, records }, { asOf }, { query }) => {
    const { titleId, name, gameName, leaderboardId, total } = board
    const lines = board.entries.map((entry) => {
      const { rank, rating, timeMs, isTime } = entry
      return `${rank}. ${entry.name}  ${measureText(rating, timeMs, isTime)}`
    })
    return {
      title: `${boardName(leaderboardId, name)} · ${gameName}`,
      path: withQuery(boardPath({ titleId, name: gameName }, leaderboardId), { asOf: query.asOf }),
      value: lines[0]?.replace(/^\d+\. /, '') ?? 'no entries',
      lines: [
        ...(asOf === undefined ? [] : [`on ${instantText(asOf)} UTC`]),
        ...lines,
        plural(total, 'entry', 'entries')
      ],
      steps: reignsOf(records).steps
    }
  }
})

const players = cardsOf({
  name: 'player',
  embed: '/embed/players/:name',
  pictures: '/players/:name',
  input: z.object({ name: text({ example: 'ann', max: 100 }), theme, rows }),
  parts: ({ name, rows: limit }) => ({
    player: ask<Player>(player, { playerName: name, limit }),
    changes: tryAsk<LeaderboardChanges>(playerHistory, { playerName: name, limit: 500 })
  }),
  facts: ({ player: found, changes }, { name }) => {
    requireSeen(name, found, changes)
    const { total, boards: on } = found
    const { steps = stepsOf('no change yet', [], false) } = changedEntries(changes ?? [])[0] ?? {}
    return {
      title: name,
      path: playerPath(name),
      value: plural(total, 'board'),
      lines: on.map(({ rank, entries, leaderboardName, gameName }) => {
        return `#${rank} of ${count(entries)}: ${leaderboardName} (${gameName})`
      }),
      steps
    }
  }
})

/** Frames, badges, charts and previews, as addresses of their own. */
export const cards: readonly Page[] = [...games, ...network, ...boards, ...players]
