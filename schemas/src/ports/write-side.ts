import { z } from 'zod'

/*
 * The conventions shared by all readers and writers of PostgreSQL, besides its tables.
 */

/** The channel on which PostgreSQL notifies of each committed change of the write side. */
export const CHANGED_CHANNEL = 'gamenet_changed'

/** Kinds of changed rows. The payload is the kind and the user_key of the row's profile: `["rating","luckybadger"]`. */
export const WRITE_NOUNS = ['profile', 'rating'] as const
export const WriteChange = z.tuple([z.enum(WRITE_NOUNS), z.string()])
export type WriteChange = z.infer<typeof WriteChange>

// The numbers of all PostgreSQL advisory locks; equal numbers are one lock.

/** Exclusive during a migration of PostgreSQL. */
export const MIGRATION_LOCK = 7_203_114

/**
 * Shared while people and users are created, exclusive during an erasure: otherwise a statement that began before the
 * end of the erasure could create the person again.
 */
export const PEOPLE_LOCK = 7_203_115

/** Shared while a projector writes to tables, exclusive for work that needs them unchanging. */
export const PASSES_LOCK = 7_203_116
/**
 * Shared by steps of rebuilds; exclusive for callers that wait until the current steps have ended, and for moves of the
 * pointer.
 */
export const FILLS_LOCK = 7_203_117
/** Exclusive for the relay that works on the outbox. */
export const RELAY_LOCK = 7_203_118
/** Exclusive while a start compares the write side with the tables and continues its numbers. */
export const NUMBERS_LOCK = 7_203_119

/**
 * Returns the SQL expression of the hash that identifies an erased name; in a statement with `erasure_salt AS s`.
 */
export const nameHashSql = (userKey: string): string => `sha256(s.salt || convert_to(${userKey}, 'UTF8'))`
