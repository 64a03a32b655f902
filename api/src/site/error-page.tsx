import type { Leaderboards, OnlineUsers, Refusal, SuggestedPlayers } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import type { ComponentChildren } from 'preact'
import { nearestNames } from '../queries/nearest-names.js'
import { SearchForm } from './components/form.js'
import { GameLink, Name, PlayerLink } from './components/marks.js'
import { boardName } from './components/records.js'
import { Feed } from './components/table.js'
import { documentOf } from './layout.js'
import type { SiteFacts } from './values/page.js'

const NEAR_MAX = 3
const HEADLINES: Readonly<Record<number, string>> = {
  400: 'This address has a mistake',
  404: 'Nothing is here',
  405: 'This address only shows pages',
  503: 'This part of the service is away'
}

/** Returns the page of a refusal: what is wrong, and where to go from here. */
export async function errorDocument(
  { status, message, code }: Refusal,
  url: string,
  site: SiteFacts,
  app: FastifyInstance
): Promise<string> {
  const words = wordsOf(url)
  // While the tables are away, the page stands without names.
  const near = await nearTo(code, url, words, app).catch(() => [])
  const headline = HEADLINES[status] ?? (status >= 500 ? 'The service failed' : 'This request was refused')
  return documentOf(
    {
      title: headline,
      canonical: '/',
      isUnlisted: true,
      content: (
        <section class="card error">
          <h1>{headline}</h1>
          <p>{message}</p>
          {near.length === 0 ? null : <Feed rows={near} row={(link) => link} />}
          {status === 404 ? <SearchForm words={words} /> : null}
          {status === 503 ? (
            <p>
              Pages that were read lately still work: <a href="/">home</a>, <a href="/games">games</a>,{' '}
              <a href="/status">status</a>. Try this one again in a minute.
            </p>
          ) : null}
          <p class="quiet">
            Status {status}, code <a href={`/docs/errors#${code}`}>{code}</a>
          </p>
        </section>
      )
    },
    site
  )
}

/** Links to what is nearest to what is unknown: games and players by name, boards of the game by number. */
async function nearTo(code: string, url: string, words: string, app: FastifyInstance): Promise<ComponentChildren[]> {
  const answer = async <Body,>(path: string) => (await app.inject(path)).json<Body>()
  if (code === 'player_unknown') {
    const beginning = encodeURIComponent(words.slice(0, 2))
    const { results } = await answer<SuggestedPlayers>(`/api/datasearch/suggest?limit=50&q=${beginning}`)
    return nearestNames(words, results, NEAR_MAX).map((name) => <PlayerLink name={name} />)
  }
  if (code === 'leaderboard_unknown') {
    const [, head = '', game = '', board = ''] = /^(.*\/games\/([^/]+).*\/boards\/)(\d+)/.exec(url) ?? []
    const boards = await answer<Leaderboards>(`/api/game/${game}/leaderboards`)
    const distance = ({ id }: Leaderboards[number]) => Math.abs(Number(id) - Number(board))
    return boards
      .sort((a, b) => distance(a) - distance(b))
      .slice(0, NEAR_MAX)
      .map(({ id, name }) => (
        <a href={head + id}>
          <Name>{boardName(id, name)}</Name>
        </a>
      ))
  }
  if (code !== 'game_unknown') return []
  const games = await answer<OnlineUsers>('/api/online-users')
  return nearestNames(words, Object.keys(games), NEAR_MAX).map((name) => (
    <GameLink titleId={games[name]?.titleId ?? null} name={name} />
  ))
}

/** Returns the words of a path, without what pages have in common, ids, and the names of files. */
function wordsOf(url: string): string {
  const [path = ''] = url.split('?')
  const segments = path.replace(/\/boards\/\d+/, '').split('/')
  try {
    return decodeURIComponent(segments.filter((segment) => !NO_WORDS.test(segment)).join(' '))
      .replaceAll('-', ' ')
      .slice(0, 100)
  } catch {
    return ''
  }
}

const NO_WORDS =
  /^(?:|games|boards|players|users|achievements|compare|records|changes|embed|[0-9a-f]{8}|\w+\.(?:svg|png))$/
