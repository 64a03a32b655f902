import { randomUUID } from 'node:crypto'
import type { Heads } from '../caught-up.js'
import type { Validators } from '../fetch/page-fetcher.js'
import type { WriteSide } from '../ports/write-side.js'

/*
 * turn    a row of `board_turn`: a board, or a title's list of boards, and when it is to be visited next
 * lease   the right to visit; it ends by itself when its holder does
 * period  how long a visit keeps: between the shortest that is configured and a day
 */

/** What is visited: a board, or, with no id, the list of a title. */
export type Place = { readonly titleId: string; readonly leaderboardId: number | null }

/** A turn that was taken. */
export type Turn = Place & {
  /** Who holds it: a name of its own for each take. */
  readonly holder: string
  readonly periodS: number
  /** Visits since the last that succeeded. */
  readonly failures: number
  /** Whether a visit before may have appended what it did not tell of. */
  readonly wasUnclean: boolean
  /** Where the log's partitions ended when the last visit that ended well had appended its changes. */
  readonly appended: Heads
  /** The page that was found equal to the board in the read tables; null when what it told is not known to be there. */
  readonly equal: EqualPage | null
}

/** A page that shows what the read tables have of its board. */
export type EqualPage = {
  readonly validators: Validators
  /** Hash of the entries that it shows. */
  readonly content: string
  /** Version of the board in the read tables; another one means that something was added, such as an import. */
  readonly version: string
}

/** What is kept of a visit. */
export type Visited = {
  /** From the end of this visit to the next, seconds. */
  readonly restS: number
  readonly periodS: number
  readonly failures: number
  readonly isUnclean: boolean
  readonly appended: Heads
  readonly equal: EqualPage | null
}

/** Whose turn it is, shared by all processes that visit boards, and kept over restarts. */
export type BoardTurns = {
  /**
   * Leases at most `count` turns that nobody holds, the most overdue in proportion to their period first. With
   * `untriedSince` all that were not tried since that instant, due or not, lists first.
   */
  take(count: number, options?: { readonly untriedSince?: Date }): Promise<Turn[]>
  /** Lengthens the lease. False when another has it now: then nothing may be appended any more. */
  renew(turn: Turn): Promise<boolean>
  /** Ends the visit; false when another has the turn now. */
  end(turn: Turn, visited: Visited): Promise<boolean>
  /** Ends the visit of a board that its title's list no longer has; false when another has the turn now. */
  drop(turn: Turn): Promise<boolean>
  /** Gives turns back that were not used: as if they had not been taken. */
  release(turns: readonly Turn[]): Promise<void>
  /** Adds turns that are new, due at once. */
  add(titleIds: readonly string[]): Promise<void>
  /**
   * Makes the boards of a title those that its list has: new ones are due at once, vanished ones have no turn any more,
   * unless they are being visited. The list itself then rests for its period.
   */
  setBoards(titleId: string, leaderboardIds: readonly number[]): Promise<{ readonly added: number }>
  /** Makes the list of a title due now, unless it could not be read last time. */
  hastenList(titleId: string): Promise<void>
  /** How many turns there are, and how many of them are due and not taken. */
  count(): Promise<{ readonly all: number; readonly due: number }>
  /** The clock by which turns are due. */
  now(): Promise<Date>
}

/** Turns are due by PostgreSQL's clock, the one that all processes share. */
export function boardTurns(
  writes: WriteSide,
  options: {
    /** Shortest period, seconds: that of a board just found. */
    readonly shortestS: number
    readonly leaseS: number
  }
): BoardTurns {
  const { shortestS, leaseS } = options
  return {
    async take(count, { untriedSince } = {}) {
      const holder = randomUUID()
      const sql = untriedSince === undefined ? TAKE_DUE : TAKE_UNTRIED
      const rows = await writes.query<Row>(sql, [holder, leaseS, count, untriedSince ?? shortestS])
      return rows.map((row) => turnOf(row, holder))
    },
    async renew(turn) {
      const rows = await writes.query(
        `UPDATE board_turn AS t SET lease_until = now() + make_interval(secs => $4)
         WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3 RETURNING 1 AS held`,
        [...keyOf(turn), turn.holder, leaseS]
      )
      return rows.length === 1
    },
    async end(turn, visited) {
      const rows = await writes.query(END, [
        ...keyOf(turn),
        turn.holder,
        visited.restS,
        visited.periodS,
        visited.failures,
        visited.isUnclean,
        JSON.stringify(visited.appended),
        visited.equal?.validators.etag ?? null,
        visited.equal?.validators.lastModified ?? null,
        visited.equal?.content ?? null,
        visited.equal?.version ?? null
      ])
      return rows.length === 1
    },
    async drop(turn) {
      const rows = await writes.query(
        `DELETE FROM board_turn AS t WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3
         RETURNING 1 AS dropped`,
        [...keyOf(turn), turn.holder]
      )
      return rows.length === 1
    },
    async release(turns) {
      for (const { titleId, leaderboardId, holder, wasUnclean } of turns) {
        await writes.query(
          `UPDATE board_turn AS t SET lease_holder = NULL, lease_until = NULL, tried_at = NULL, is_unclean = $4
           WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3`,
          [...keyOf({ titleId, leaderboardId }), holder, wasUnclean]
        )
      }
    },
    async add(titleIds) {
      await writes.query(ADD, [titleIds, titleIds.map(() => LIST), shortestS])
    },
    async setBoards(titleId, leaderboardIds) {
      const added = await writes.query(ADD, [leaderboardIds.map(() => titleId), leaderboardIds, shortestS])
      await writes.query(
        `DELETE FROM board_turn AS t WHERE t.title_id = $1 AND t.leaderboard_id <> ${LIST}
           AND t.leaderboard_id <> ALL ($2::bigint[]) AND (t.lease_until IS NULL OR t.lease_until <= now())`,
        [titleId, leaderboardIds]
      )
      await writes.query(
        `UPDATE board_turn AS t SET due_at = greatest(t.due_at, now() + make_interval(secs => t.period_s))
         WHERE t.title_id = $1 AND t.leaderboard_id = ${LIST}`,
        [titleId]
      )
      return { added: added.length }
    },
    async hastenList(titleId) {
      await writes.query(
        `UPDATE board_turn AS t SET due_at = least(t.due_at, now())
         WHERE t.title_id = $1 AND t.leaderboard_id = ${LIST} AND t.failures = 0`,
        [titleId]
      )
    },
    async count() {
      const [row] = await writes.query<{ all: string; due: string }>(
        `SELECT count(*) AS all, count(*) FILTER (WHERE ${IS_DUE} AND ${IS_FREE}) AS due FROM board_turn AS t`
      )
      return { all: Number(row?.all ?? 0), due: Number(row?.due ?? 0) }
    },
    async now() {
      const [row] = await writes.query<{ now: Date }>('SELECT now() AS now')
      return row?.now ?? new Date()
    }
  }
}

/** The id that stands for a title's list; ids of boards are 0 and more. */
const LIST = -1
const IS_DUE = 't.due_at <= now()'
const IS_FREE = '(t.lease_until IS NULL OR t.lease_until <= now())'

/** A row that another process is just taking is skipped, not waited for. */
const takeStatement = (wanted: string, order: string) => `
  WITH taken AS MATERIALIZED (
    SELECT t.title_id, t.leaderboard_id, t.is_unclean
    FROM board_turn AS t WHERE ${wanted} AND ${IS_FREE}
    ORDER BY ${order}, t.title_id, t.leaderboard_id
    LIMIT $3 FOR UPDATE SKIP LOCKED)
  UPDATE board_turn AS t
  SET lease_holder = $1, lease_until = now() + make_interval(secs => $2), tried_at = now(), is_unclean = true
  FROM taken WHERE t.title_id = taken.title_id AND t.leaderboard_id = taken.leaderboard_id
  RETURNING t.title_id, t.leaderboard_id, t.period_s, t.failures, taken.is_unclean AS was_unclean, t.appended, t.etag,
    t.last_modified, t.content, t.seen_version`

const TAKE_DUE = takeStatement(
  IS_DUE,
  'extract(epoch FROM now() - t.due_at) / greatest(t.period_s, $4::double precision, 1) DESC'
)
const TAKE_UNTRIED = takeStatement(
  '(t.tried_at IS NULL OR t.tried_at < $4::timestamptz)',
  `(t.leaderboard_id <> ${LIST})`
)

const END = `
  UPDATE board_turn AS t
  SET lease_holder = NULL, lease_until = NULL, due_at = now() + make_interval(secs => $4), period_s = $5, failures = $6,
    is_unclean = $7, appended = $8::jsonb, etag = $9, last_modified = $10, content = $11, seen_version = $12
  WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3 RETURNING 1 AS ended`

const ADD = `
  INSERT INTO board_turn (title_id, leaderboard_id, due_at, period_s)
  SELECT n.title_id, n.leaderboard_id, now(), $3
  FROM unnest($1::text[], $2::bigint[]) AS n (title_id, leaderboard_id)
  ON CONFLICT DO NOTHING RETURNING 1 AS added`

type Row = {
  title_id: string
  leaderboard_id: string
  period_s: number
  failures: number
  was_unclean: boolean
  appended: Heads
  etag: string | null
  last_modified: string | null
  content: string | null
  seen_version: string | null
}

function turnOf(row: Row, holder: string): Turn {
  const leaderboardId = Number(row.leaderboard_id)
  return {
    titleId: row.title_id,
    leaderboardId: leaderboardId === LIST ? null : leaderboardId,
    holder,
    periodS: row.period_s,
    failures: row.failures,
    wasUnclean: row.was_unclean,
    appended: row.appended,
    equal: equalPageOf(row)
  }
}

function equalPageOf({ etag, last_modified: lastModified, content, seen_version: version }: Row): EqualPage | null {
  if (content === null || version === null) return null
  return {
    validators: { ...(etag !== null && { etag }), ...(lastModified !== null && { lastModified }) },
    content,
    version
  }
}

function keyOf({ titleId, leaderboardId }: Place): [string, number] {
  return [titleId, leaderboardId ?? LIST]
}
