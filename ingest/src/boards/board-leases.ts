import { randomUUID } from 'node:crypto'
import type { Heads, WriteSide } from '@gamenet/schemas'
import type { Validators } from '../fetch/page-fetcher.js'

/*
 * place   a row of `board_lease`: a board or a title's list of boards, with the instant of its next visit
 * lease   the right of one process to visit a place; it expires when its holder dies
 * period  seconds between two visits: from the configured minimum to a day
 */

/** A place: a board, or the list of a title if `leaderboardId` is null. */
export type Place = { readonly titleId: string; readonly leaderboardId: number | null }

/** An acquired lease on a place. */
export type BoardLease = Place & {
  /** Id of the holder, unique per call of `acquire`. */
  readonly holder: string
  readonly periodS: number
  /** Visits since the last successful one. */
  readonly failures: number
  /** Whether an earlier visit may have appended events that it did not record. */
  readonly wasUnclean: boolean
  /** Ends of the log's partitions when the last successful visit had appended its changes. */
  readonly appended: Heads
  /** The page that was equal to the board in the read tables; null when its events may be missing there. */
  readonly equal: EqualPage | null
}

/** A page that shows the board as the read tables have it. */
export type EqualPage = {
  readonly validators: Validators
  /** Hash of the page's entries. */
  readonly content: string
  /** Version of the board in the read tables. It changes when events are added, for example by an import. */
  readonly version: string
}

/** The stored result of a visit. */
export type VisitResult = Pick<BoardLease, 'periodS' | 'failures' | 'appended' | 'equal'> & {
  /** From the end of this visit to the next, seconds. */
  readonly restS: number
  readonly isUnclean: boolean
}

/** Leases on visits of boards, shared by all processes and kept across restarts. */
export type BoardLeases = {
  /**
   * Acquires at most `count` free leases on due places, the most overdue in proportion to their period first. With
   * `untriedSince`: on places that were not visited since that instant, due or not, lists first.
   */
  acquire(count: number, options?: { readonly untriedSince?: Date }): Promise<BoardLease[]>
  /** Renews the lease. Returns false when another process holds it; the visit must then append nothing more. */
  renew(lease: BoardLease): Promise<boolean>
  /** Ends the visit and releases the lease. Returns false when another process holds it. */
  end(lease: BoardLease, visited: VisitResult): Promise<boolean>
  /** Deletes the place of a board that left its title's list. Returns false when another process holds the lease. */
  drop(lease: BoardLease): Promise<boolean>
  /** Releases unused leases, as if they had not been acquired. */
  release(leases: readonly BoardLease[]): Promise<void>
  /** Adds the lists of new titles, due at once. */
  add(titleIds: readonly string[]): Promise<void>
  /**
   * Sets the boards of a title to those of its list. New boards are due at once. Missing boards are deleted unless they
   * are being visited. The list itself is due again after its period.
   */
  setBoards(titleId: string, leaderboardIds: readonly number[]): Promise<{ readonly added: number }>
  /** Makes the list of a title due now, unless its last visit failed. */
  hastenList(titleId: string): Promise<void>
  /** Counts all places, and due places with a free lease. */
  count(): Promise<{ readonly all: number; readonly due: number }>
  /** Returns the time of the clock that decides which places are due. */
  now(): Promise<Date>
}

/** Leases in PostgreSQL. Its clock decides which places are due, because all processes share it. */
export function boardLeases(
  writes: WriteSide,
  options: {
    /** Shortest period in seconds; the initial period of a new board. */
    readonly shortestS: number
    readonly leaseS: number
  }
): BoardLeases {
  const { shortestS, leaseS } = options
  return {
    async acquire(count, { untriedSince } = {}) {
      const holder = randomUUID()
      const sql = untriedSince === undefined ? ACQUIRE_DUE : ACQUIRE_UNTRIED
      const rows = await writes.query<Row>(sql, [holder, leaseS, count, untriedSince ?? shortestS])
      return rows.map((row) => leaseOf(row, holder))
    },
    async renew(lease) {
      const rows = await writes.query(
        `UPDATE board_lease AS t SET lease_until = now() + make_interval(secs => $4)
         WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3 RETURNING 1 AS held`,
        [...keyOf(lease), lease.holder, leaseS]
      )
      return rows.length === 1
    },
    async end(lease, visited) {
      const rows = await writes.query(END, [
        ...keyOf(lease),
        lease.holder,
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
    async drop(lease) {
      const rows = await writes.query(
        `DELETE FROM board_lease AS t WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3
         RETURNING 1 AS dropped`,
        [...keyOf(lease), lease.holder]
      )
      return rows.length === 1
    },
    async release(leases) {
      for (const { titleId, leaderboardId, holder, wasUnclean } of leases)
        await writes.query(
          `UPDATE board_lease AS t SET lease_holder = NULL, lease_until = NULL, tried_at = NULL, is_unclean = $4
           WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3`,
          [...keyOf({ titleId, leaderboardId }), holder, wasUnclean]
        )
    },
    async add(titleIds) {
      await writes.query(ADD, [titleIds, titleIds.map(() => LIST), shortestS])
    },
    async setBoards(titleId, leaderboardIds) {
      const added = await writes.query(ADD, [leaderboardIds.map(() => titleId), leaderboardIds, shortestS])
      await writes.query(
        `DELETE FROM board_lease AS t WHERE t.title_id = $1 AND t.leaderboard_id <> ${LIST}
           AND t.leaderboard_id <> ALL ($2::bigint[]) AND (t.lease_until IS NULL OR t.lease_until <= now())`,
        [titleId, leaderboardIds]
      )
      await writes.query(
        `UPDATE board_lease AS t SET due_at = greatest(t.due_at, now() + make_interval(secs => t.period_s))
         WHERE t.title_id = $1 AND t.leaderboard_id = ${LIST}`,
        [titleId]
      )
      return { added: added.length }
    },
    async hastenList(titleId) {
      await writes.query(
        `UPDATE board_lease AS t SET due_at = least(t.due_at, now())
         WHERE t.title_id = $1 AND t.leaderboard_id = ${LIST} AND t.failures = 0`,
        [titleId]
      )
    },
    async count() {
      const [row] = await writes.query<{ all: string; due: string }>(
        `SELECT count(*) AS all, count(*) FILTER (WHERE ${IS_DUE} AND ${IS_FREE}) AS due FROM board_lease AS t`
      )
      return { all: Number(row?.all ?? 0), due: Number(row?.due ?? 0) }
    },
    async now() {
      const [row] = await writes.query<{ now: Date }>('SELECT now() AS now')
      return row?.now ?? new Date()
    }
  }
}

/** The id of a title's list. Ids of boards are 0 or more. */
const LIST = -1
// A visit in the future was before the clock was set back.
const WAS_SET_BACK = 't.tried_at > now()'
const IS_DUE = `(t.due_at <= now() OR ${WAS_SET_BACK})`
const IS_FREE = '(t.lease_until IS NULL OR t.lease_until <= now())'

/** Skips a row that another process is acquiring. */
const acquireStatement = (wanted: string, order: string) => `
  WITH taken AS MATERIALIZED (
    SELECT t.title_id, t.leaderboard_id, t.is_unclean
    FROM board_lease AS t WHERE ${wanted} AND ${IS_FREE}
    ORDER BY ${order}, t.title_id, t.leaderboard_id
    LIMIT $3 FOR UPDATE SKIP LOCKED)
  UPDATE board_lease AS t
  SET lease_holder = $1, lease_until = now() + make_interval(secs => $2), tried_at = now(), is_unclean = true
  FROM taken WHERE t.title_id = taken.title_id AND t.leaderboard_id = taken.leaderboard_id
  RETURNING t.title_id AS "titleId", t.leaderboard_id AS id, t.period_s AS "periodS", t.failures,
    taken.is_unclean AS "wasUnclean", t.appended, t.etag, t.last_modified AS "lastModified", t.content,
    t.seen_version AS version`

const ACQUIRE_DUE = acquireStatement(
  IS_DUE,
  'extract(epoch FROM now() - t.due_at) / greatest(t.period_s, $4::double precision, 1) DESC'
)
const ACQUIRE_UNTRIED = acquireStatement(
  `(t.tried_at IS NULL OR t.tried_at < $4::timestamptz OR ${WAS_SET_BACK})`,
  `(t.leaderboard_id <> ${LIST})`
)

const END = `
  UPDATE board_lease AS t
  SET lease_holder = NULL, lease_until = NULL, due_at = now() + make_interval(secs => $4), period_s = $5, failures = $6,
    is_unclean = $7, appended = $8::jsonb, etag = $9, last_modified = $10, content = $11, seen_version = $12
  WHERE t.title_id = $1 AND t.leaderboard_id = $2 AND t.lease_holder = $3 RETURNING 1 AS ended`

const ADD = `
  INSERT INTO board_lease (title_id, leaderboard_id, due_at, period_s)
  SELECT n.title_id, n.leaderboard_id, now(), $3
  FROM unnest($1::text[], $2::bigint[]) AS n (title_id, leaderboard_id)
  ON CONFLICT DO NOTHING RETURNING 1 AS added`

type Row = Omit<BoardLease, 'leaderboardId' | 'holder' | 'equal'> & {
  readonly id: string
  readonly etag: string | null
  readonly lastModified: string | null
  readonly content: string | null
  readonly version: string | null
}

function leaseOf({ id, etag, lastModified, content, version, ...row }: Row, holder: string): BoardLease {
  const leaderboardId = Number(id) === LIST ? null : Number(id)
  const validators = { ...(etag !== null && { etag }), ...(lastModified !== null && { lastModified }) }
  const equal = content === null || version === null ? null : { validators, content, version }
  return { ...row, leaderboardId, holder, equal }
}

const keyOf = ({ titleId, leaderboardId }: Place): [string, number] => [titleId, leaderboardId ?? LIST]
