import type { Matches, MatchHistory, MatchStats } from '@gamenet/schemas'
import { z } from 'zod'
import { instant, text } from '../../request/parameters.js'
import { matches, matchHistory, matchStats } from '../../routes/match-list.js'
import { Form, Labelled } from '../components/form.js'
import { addressedTitle } from '../components/game-address.js'
import { Csv, GameLink, N, PlayerLink, Time } from '../components/marks.js'
import { TableCard } from '../components/table.js'
import { count, gamePath, plural, slotsText } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const HOURS = 48
const SHOWN = 50

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
  parts: async ({ game, slug, from }: MatchesInput, context) => {
    const { titleId } = await addressedTitle({ game, slug }, context, '/matches')
    return {
      open: ask<Matches>(matches, { titleId }),
      history: ask<MatchHistory>(matchHistory, { titleId, ...(from === undefined ? { hours: HOURS } : context.query) }),
      stats: tryAsk<MatchStats>(matchStats, { titleId })
    }
  },
  view: ({ open, history, stats }, { from }, { query }) => {
    const game = { titleId: open.titleId, name: open.gameName }
    const path = `${gamePath(game)}/matches`
    return {
      title: `${plural(open.matches.length, 'open match', 'open matches')} of ${open.gameName}`,
      description: `Open lobbies of ${open.gameName}, matches of the last ${HOURS} hours, and who hosts most.`,
      canonical: path,
      section: '/games',
      content: (
        <>
          <section class="head">
            <p>
              <GameLink {...game} /> ›
            </p>
            <h1>Matches</h1>
          </section>
          <div class="columns">
            <Open open={open} />
            {stats === undefined ? null : <Stats stats={stats} />}
          </div>
          <Form action={path} submit="Show">
            <Labelled label="From" type="date" name="from" value={query.from?.slice(0, 10)} />
            <Labelled label="to" type="date" name="to" value={query.to?.slice(0, 10)} />
          </Form>
          <TableCard
            title={from === undefined ? `The last ${HOURS} hours` : 'Matches'}
            more={<Csv href={`/api/title/${open.titleId}/matches/history?hours=${HOURS}&format=csv`} />}
            rows={history}
            most={SHOWN}
            empty="No match was seen in this time."
            columns={[
              ['Host', ({ hostName }) => <PlayerLink name={hostName} />],
              ['First seen', ({ firstSeen }) => <Time at={firstSeen} />],
              ['#Minutes', ({ isOpen, durationMinutes }) => (isOpen ? 'open' : Math.round(durationMinutes))],
              ['#Players', ({ peakPlayers, maxPlayers }) => slotsText(peakPlayers, maxPlayers)]
            ]}
          />
        </>
      )
    }
  }
})

function Open({ open }: { open: Matches }) {
  return (
    <TableCard
      title={`Open now (${count(open.matches.length)})`}
      rows={open.matches.slice(0, SHOWN)}
      empty="No open match."
      columns={[
        ['Host', ({ hostName }) => <PlayerLink name={hostName} />],
        ['#Players', ({ currentPlayers, maxPlayers }) => slotsText(currentPlayers, maxPlayers)],
        ['Seen', ({ timestamp }) => <Time at={timestamp} ago />]
      ]}
    />
  )
}

function Stats({ stats }: { stats: MatchStats }) {
  const { busiestHourUtc: hour } = stats
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
      <TableCard
        title="Numbers"
        rows={facts}
        columns={[
          ['Matches', ([name]) => name],
          ['#Number', ([, value]) => value !== null && <N of={value} />]
        ]}
      >
        {hour === null ? null : (
          <p class="quiet">
            Busiest hour: {hour} to {hour + 1} h UTC
          </p>
        )}
      </TableCard>
      <TableCard
        title="Top hosts"
        rows={stats.topHosts}
        columns={[
          ['Host', ({ hostName }) => <PlayerLink name={hostName} />],
          ['#Matches', ({ matches: number }) => count(number)]
        ]}
      />
    </>
  )
}
