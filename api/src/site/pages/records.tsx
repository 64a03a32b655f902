import type { LeaderboardChanges, RecentRecords } from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { Choice, Field, Form } from '../components/form.js'
import { Csv, PlayerLink } from '../components/marks.js'
import { BoardOfGame, ChangeFacts, changeText, RecordLine } from '../components/records.js'
import { Feed, FeedCard, Pager } from '../components/table.js'
import { dayText, groupedBy, withQuery } from '../components/text.js'
import { ask, page, type Query } from '../values/page.js'

const ROWS = 50
/** The API skips at most so many. */
const PAGES_MAX = 200
const chosen = {
  game: text({ example: 'Halo 2', max: 100 }).optional(),
  player: text({ example: 'ann', max: 100 }).optional(),
  page: integer({ min: 1, max: PAGES_MAX }).default(1)
}
const rowsOf = (number: number) => ({ limit: ROWS, offset: (number - 1) * ROWS })

/** `/records`: records beaten; first sightings by a switch. */
export const recordsPage = page({
  name: 'page-records',
  path: '/records',
  input: z.object({ ...chosen, first: integer({ min: 0, max: 1 }).default(0) }),
  parts: ({ game, player, first, page: number }) => ({
    records: ask<RecentRecords>(recentlySetRecords, {
      ...{ game, player, ...rowsOf(number) },
      contested: first === 0 ? 'true' : undefined
    })
  }),
  view: ({ records }, { first, game, page: number }, { query }) => {
    const feed = withQuery('/api/records/recent.atom', { contested: first === 0 ? 'true' : undefined, game })
    return {
      title: 'Records beaten',
      description: 'The newest records on all boards: who beat whom, by how much, and when.',
      canonical: '/records',
      section: '/records',
      feeds: [{ title: 'Records', href: feed }],
      content: (
        <>
          <h1>{first === 0 ? 'Records beaten' : 'Records'}</h1>
          <Filters path="/records" query={query}>
            <Choice
              label="Which records"
              path="/records"
              query={{ ...query, page: undefined }}
              name="first"
              values={['0', '1']}
              current={String(first)}
              texts={{ 0: 'Beaten', 1: 'With first sightings' }}
            />
            <a href={feed}>Atom</a>
          </Filters>
          <section class="card">
            <Feed rows={records} row={(record) => <RecordLine record={record} hasGame />} />
            <More path="/records" query={query} page={number} rows={records.length} />
          </section>
        </>
      )
    }
  }
})

/** `/changes`: every change of every board. */
export const changesPage = page({
  name: 'page-changes',
  path: '/changes',
  input: z.object({
    ...chosen,
    board: integer({ min: 0, max: 4_294_967_295 }).optional(),
    type: oneOf(['new', 'updated', 'removed']).optional()
  }),
  parts: ({ game, board, player, type, page: number }) => ({
    changes: ask<LeaderboardChanges>(leaderboardChanges, {
      ...{ game, leaderboardId: board, player, changeType: type },
      ...rowsOf(number)
    })
  }),
  view: ({ changes }, { page: number, game, board, player }, { query }) => ({
    title: 'Board changes',
    description: 'Who entered, improved or left, on every board of every game.',
    canonical: '/changes',
    section: '/changes',
    content: (
      <>
        <h1>Board changes</h1>
        <Filters path="/changes" query={query}>
          <Csv href={withQuery('/api/leaderboard-changes', { game, leaderboardId: board, player, format: 'csv' })} />
          {player === undefined ? null : <a href={`/api/player/${encodeURIComponent(player)}/changes.atom`}>Atom</a>}
        </Filters>
        {changes.length === 0 ? <p class="card">No change matches.</p> : null}
        {[...groupedBy(changes, ({ changedAt }) => changedAt.slice(0, 10))].map(([day, of]) => (
          <FeedCard
            key={day}
            title={dayText(day)}
            rows={of}
            row={(change) => (
              <>
                <PlayerLink name={change.playerName} /> {changeText(change)} on <BoardOfGame {...change} />{' '}
                <ChangeFacts change={change} />
              </>
            )}
          />
        ))}
        <More path="/changes" query={query} page={number} rows={changes.length} />
      </>
    )
  })
})

type FiltersProps = { path: string; query: Query; children: ComponentChildren }

function Filters({ path, query: { game, player, page: _page, ...hidden }, children }: FiltersProps) {
  return (
    <div class="row">
      <Form action={path} submit="Filter" hidden={hidden}>
        <Field name="game" value={game} label="Of a game" />
        <Field name="player" value={player} label="Of a player" />
      </Form>
      {children}
    </div>
  )
}

type MoreProps = { path: string; query: Query; page: number; rows: number }

/** Links to the pages of a list whose length is not counted. */
function More({ rows, ...pager }: MoreProps) {
  return <Pager {...pager} pages={Math.min(PAGES_MAX, pager.page + (rows === ROWS ? 1 : 0))} />
}
