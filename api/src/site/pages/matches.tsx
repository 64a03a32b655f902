import type { Matches, MatchHistory, MatchStats } from '@gamenet/schemas'
import { z } from 'zod'
import { instant, text } from '../../request/parameters.js'
import { matches, matchHistory, matchStats } from '../../routes/match-list.js'
import { addressedTitle } from '../components/game-address.js'
import { iso } from '../components/history.js'
import { Card, N, Name, PlayerLink, Table, Time } from '../components/marks.js'
import { count, gamePath, plural, withQuery } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const HOURS = 48
const SHOWN = 200

const matchesInput = z.object({
  game: text({ example: '4d530064' }),
  slug: text({ example: 'halo-2' }),
  from: instant().optional(),
  to: instant().optional()
})
type MatchesInput = z.infer<typeof matchesInput>

/** `/games/:game/:slug/matches`: open matches, their history and hosts. */
export const matchesPage = page({
  name: 'page-matches',
  path: '/games/:game/:slug/matches',
  input: matchesInput,
  parts: async ({ game, slug, from, to }: MatchesInput, context) => {
    const query = { from: from === undefined ? undefined : iso(from), to: to === undefined ? undefined : iso(to) }
    const { titleId } = await addressedTitle({ game, slug }, context, { rest: '/matches', query })
    return {
      open: ask<Matches>(matches, { titleId }),
      history: ask<MatchHistory>(matchHistory, { titleId, ...(from === undefined ? { hours: HOURS } : query) }),
      stats: tryAsk<MatchStats>(matchStats, { titleId })
    }
  },
  view: ({ open, history, stats }, { from }) => {
    const game = { titleId: open.titleId, name: open.gameName }
    const path = `${gamePath(game)}/matches`
    return {
      title: `${plural(open.matches.length, 'open match', 'open matches')} of ${open.gameName}`,
      description: `Open lobbies of ${open.gameName}, matches of the last ${HOURS} hours, and who hosts most.`,
      canonical: path,
      isUnlisted: from !== undefined,
      section: '/games',
      content: (
        <>
          <section class="head">
            <p>
              <a href={gamePath(game)}>
                <Name>{open.gameName}</Name>
              </a>{' '}
              ›
            </p>
            <h1>Matches</h1>
          </section>
          <div class="columns">
            <Open open={open} />
            {stats === undefined ? null : <Stats stats={stats} />}
          </div>
          <Card
            title={from === undefined ? `The last ${HOURS} hours` : 'Matches'}
            more={
              <a href={withQuery(`/api/title/${open.titleId}/matches/history`, { hours: HOURS, format: 'csv' })}>CSV</a>
            }
          >
            <form action={path} class="row">
              <label>
                From <input type="date" name="from" value={from === undefined ? undefined : iso(from).slice(0, 10)} />
              </label>
              <label>
                to <input type="date" name="to" />
              </label>
              <button type="submit">Show</button>
            </form>
            <History history={history} />
          </Card>
        </>
      )
    }
  }
})

function Open({ open }: { open: Matches }) {
  return (
    <Card title={`Open now (${count(open.matches.length)})`}>
      {open.matches.length === 0 ? (
        <p class="quiet">No open match.</p>
      ) : (
        <Table label="Open matches" head={['Host', '#Players', 'Seen']}>
          {open.matches.slice(0, SHOWN).map(({ hostName, currentPlayers, maxPlayers, timestamp }, index) => (
            <tr key={index}>
              <th scope="row">
                <PlayerLink name={hostName} />
              </th>
              <td class="number">
                {currentPlayers}/{maxPlayers === 0 ? '?' : maxPlayers}
              </td>
              <td>
                <Time at={timestamp} ago />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}

function Stats({ stats }: { stats: MatchStats }) {
  const facts = [
    ['Last 24 hours', stats.matches24h],
    ['Last 7 days', stats.matches7d],
    ['Last 30 days', stats.matches30d],
    ['Peak open matches', stats.peakConcurrentMatches],
    ['Mean minutes', stats.averageDurationMinutes],
    ['Mean players', stats.averagePlayers]
  ] as const
  return (
    <>
      <Card title="Numbers">
        <Table label="Numbers of matches" head={['Matches', '#Number']}>
          {facts.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{value === null ? '' : <N of={value} />}</td>
            </tr>
          ))}
        </Table>
        {stats.busiestHourUtc === null ? null : (
          <p class="quiet">
            Busiest hour: {stats.busiestHourUtc} to {stats.busiestHourUtc + 1} h UTC
          </p>
        )}
      </Card>
      <Card title="Top hosts">
        <ol>
          {stats.topHosts.map(({ hostName, matches: number }) => (
            <li key={hostName}>
              <PlayerLink name={hostName} /> {count(number)}
            </li>
          ))}
        </ol>
      </Card>
    </>
  )
}

function History({ history }: { history: MatchHistory }) {
  if (history.length === 0) return <p class="quiet">No match was seen in this time.</p>
  return (
    <>
      <Table label="Matches" head={['Host', 'First seen', '#Minutes', '#Players']}>
        {history
          .slice(0, SHOWN)
          .map(({ hostName, firstSeen, durationMinutes, peakPlayers, maxPlayers, isOpen }, index) => (
            <tr key={index}>
              <th scope="row">
                <PlayerLink name={hostName} />
              </th>
              <td>
                <Time at={firstSeen} />
              </td>
              <td class="number">{isOpen ? 'open' : Math.round(durationMinutes)}</td>
              <td class="number">
                {peakPlayers}/{maxPlayers === 0 ? '?' : maxPlayers}
              </td>
            </tr>
          ))}
      </Table>
      {history.length > SHOWN ? (
        <p class="quiet">
          The newest {SHOWN} of {count(history.length)}; the CSV has all.
        </p>
      ) : null}
    </>
  )
}
