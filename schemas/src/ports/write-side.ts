import { z } from 'zod'

/*
 * The conventions shared by all readers and writers of PostgreSQL, besides its tables.
 */

/** The channel on which PostgreSQL notifies of each committed change of the write side. */
export const CHANGED_CHANNEL = 'gamenet_changed'

/** The payload: the kind of the changed row, and the user_key of its profile; `["rating","luckybadger"]`. */
export const WRITE_NOUNS = ['profile', 'rating'] as const
export const WriteChange = z.tuple([z.enum(WRITE_NOUNS), z.string()])
export type WriteChange = z.infer<typeof WriteChange>

// The numbers of PostgreSQL's advisory locks, all of them here: two that are equal are one lock.

/** Held alone by who migrates PostgreSQL. */
export const MIGRATION_LOCK = 7_203_114

/**
 * Held, shared, while persons and users are made, and alone by who forgets one: else somebody could be made by a
 * statement that began before the erasure ended, and would be known again.
 */
export const PEOPLE_LOCK = 7_203_115

/** Held, shared, while a projector writes to read tables, and alone by who swaps some. */
export const PASSES_LOCK = 7_203_116
/** Held together by steps of rebuilds, exclusively by callers that wait until those under way have ended. */
export const FILLS_LOCK = 7_203_117
/** Held alone by the relay of the outbox that works. */
export const RELAY_LOCK = 7_203_118

/**
 * The hash that identifies an erased name, as an SQL expression of a `user_key` and a `forgetting_salt.salt`.
 */
export function nameHashSql(userKey: string, salt: string): string {
  return `sha256(${salt} || convert_to(${userKey}, 'UTF8'))`
}
