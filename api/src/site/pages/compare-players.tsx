import type { PlayerComparison } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, text } from '../../request/parameters.js'
import { playerComparison } from '../../routes/player-comparison.js'
import { Field, Form } from '../components/form.js'
import { Name, PlayerLink } from '../components/marks.js'
import { BoardLink, gapText, measureText } from '../components/records.js'
import { type Column, Feed, Pager, pageOf, Table } from '../components/table.js'
import { count, plural, withQuery } from '../components/text.js'
import { type Part, page, tryAsk } from '../values/page.js'

const NAMES_MAX = 8
const BOARDS = 100

const playersInput = z.object({
  names: text({ example: 'ann,bob', max: 500 }).optional(),
  with: text({ example: 'bob', max: 100 }).optional(),
  page: integer({ min: 1, max: 100 }).default(1)
})
type PlayersInput = z.infer<typeof playersInput>

/** `/compare/players`: the boards that the first of two to eight players shares with the others. */
export const comparePlayersPage = page({
  name: 'page-compare-players',
  path: '/compare/players',
  input: playersInput,
  // Each of the others with the first one.
  parts: (input: PlayersInput): Readonly<Record<string, Part<PlayerComparison | undefined>>> => {
    const [first, ...others] = namesOf(input)
    return Object.fromEntries(
      others.map((other) => [other, tryAsk<PlayerComparison>(playerComparison, { names: `${first},${other}` })])
    )
  },
  view: (answers, input, { query }) => {
    const names = namesOf(input)
    const path = withQuery('/compare/players', { names: names.join(',') })
    const comparisons = names.slice(1).flatMap((name) => answers[name] ?? [])
    return {
      title: comparisons.length === 0 ? 'Compare players' : names.join(' and '),
      description: 'The boards that players share, and who leads where.',
      canonical: path,
      isUnlisted: true,
      section: '/compare',
      content: (
        <>
          <h1>Compare players</h1>
          <Form action="/compare/players" submit="Compare">
            <Field name="names" value={names.join(',')} label="Names, separated by commas" required />
            <Field name="with" label="Another player" />
          </Form>
          {comparisons.length === 0 ? (
            <p>Enter two to {NAMES_MAX} different names.</p>
          ) : (
            <Shared names={names} comparisons={comparisons} page={input.page} query={query} />
          )}
        </>
      )
    }
  }
})

function namesOf({ names = '', with: other = '' }: PlayersInput): string[] {
  const given = [...names.split(','), other].map((name) => name.trim()).filter((name) => name !== '')
  const byKey = new Map(given.map((name) => [name.toLowerCase(), name]))
  return [...byKey.values()].slice(0, NAMES_MAX)
}

type Board = PlayerComparison['boards'][number]
type Entry = Board['entries'][number]

/** Returns each board once, with the entries of all who are compared on it. */
function mergedBoards(comparisons: readonly PlayerComparison[]): Board[] {
  const boards = new Map<string, Board>()
  for (const board of comparisons.flatMap((each) => each.boards)) {
    const key = `${board.titleId}/${board.leaderboardId}`
    const known = boards.get(key)
    // The first entry is that of the first player, who is in every comparison.
    const entries = known === undefined ? board.entries : [...known.entries, ...board.entries.slice(1)]
    boards.set(key, { ...board, entries })
  }
  return [...boards.values()]
}

type SharedProps = {
  names: readonly string[]
  comparisons: readonly PlayerComparison[]
  page: number
  query: Readonly<Record<string, string | undefined>>
}

function Shared({ names, comparisons, page: given, query }: SharedProps) {
  const boards = mergedBoards(comparisons)
  const compared = comparisons.flatMap(({ players }) => players)
  const onOf = (name: string) => compared.find(({ playerName }) => sameName(playerName, name))?.leaderboardsOn ?? 0
  const number = pageOf(given, boards.length, BOARDS)
  const leaders = boards.map((board) => leaderOf(board)?.playerName.toLowerCase())
  return (
    <>
      <section class="card">
        <Feed
          rows={names}
          row={(name) => (
            <>
              <PlayerLink name={name} />: on {plural(onOf(name), 'board')}, leads{' '}
              <strong>{count(leaders.filter((leader) => leader === name.toLowerCase()).length)}</strong>
            </>
          )}
        />
        <p class="quiet">
          {plural(boards.length, 'shared board')},{' '}
          {plural(leaders.filter((leader) => leader === undefined).length, 'tie')}.
        </p>
      </section>
      <section class="card">
        <Table
          label="Shared boards"
          rows={boards.slice((number.page - 1) * BOARDS, number.page * BOARDS)}
          columns={[
            ['Board', (board) => <BoardLink {...board} />],
            ['Game', ({ gameName }) => <Name>{gameName}</Name>],
            ...names.map((name): Column<Board> => [`#${name}`, (board) => <Value board={board} name={name} />]),
            ['#Gap', ({ gap, entries }) => (names.length > 2 ? '' : gapText(entries[0]?.isTime === true, gap, 0))]
          ]}
        />
        <Pager {...number} path="/compare/players" query={query} />
      </section>
    </>
  )
}

function sameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** The best entry; undefined where the best rank is shared. */
function leaderOf({ entries }: Board): Entry | undefined {
  const best = Math.min(...entries.map(({ rank }) => rank))
  const leaders = entries.filter(({ rank }) => rank === best)
  return leaders.length === 1 ? leaders[0] : undefined
}

function Value({ board, name }: { board: Board; name: string }) {
  const entry = board.entries.find(({ playerName }) => sameName(playerName, name))
  if (entry === undefined) return null
  const text = `${measureText(entry.rating, entry.timeMs, entry.isTime)} (#${entry.rank})`
  return <span class={entry === leaderOf(board) ? 'best' : undefined}>{text}</span>
}
