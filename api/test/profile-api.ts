import { nameKey, Refusal, type WriteTransactions } from '@gamenet/schemas'
import { type BoardApi, openBoardApi } from './board-api.js'
import { openWriteSide } from './people-api.js'
import { time } from './stored-tables.js'
import type { Teardown } from './support/test-app.js'

/** The profile fields that a test sets; all others have the values of a new row. */
export type ProfileFacts = {
  readonly username: string
  readonly linkedGamertag?: string
  readonly sessionGamertag?: string
  readonly bio?: string
  readonly socialLinks?: readonly object[]
}

/** One field of `presence_latest`. */
export type PresenceFact = { readonly field: string; readonly value: string; readonly ms: number }

/** One row of `presence_day`. */
export type Day = {
  readonly date: string
  readonly sightings: number
  readonly onlineSightings: number
  readonly seconds: Readonly<Record<string, number>>
}

export type ProfileApi = BoardApi & Awaited<ReturnType<typeof openWrites>> & ReturnType<typeof peopleTables>

/** The whole API on real engines, with tables of boards and of people that a test fills by hand. */
export async function openProfileApi(t: Teardown): Promise<ProfileApi> {
  const writes = await openWrites()
  const api = await openBoardApi(t, { writes: writes.writes })
  return { ...api, ...writes, ...peopleTables(api) }
}

async function openWrites() {
  const postgres = await openWriteSide()
  let isAway = false
  const away = async (): Promise<never> => {
    throw new Refusal('engine_away', [], { retryAfterSeconds: 5 })
  }
  const writes: WriteTransactions = {
    query: (sql, values) => (isAway ? away() : postgres.query(sql, values)),
    transaction: (work) => (isAway ? away() : postgres.transaction(work))
  }
  return {
    postgres,
    writes,
    /** Makes PostgreSQL unavailable. */
    goAway: (): void => {
      isAway = true
    },
    storeProfile: async (facts: ProfileFacts): Promise<void> => {
      const { username, linkedGamertag = '', sessionGamertag = '', bio = '', socialLinks = [] } = facts
      await postgres.query(
        `INSERT INTO profile (user_key, username, linked_gamertag, session_gamertag, bio, social_links, revision, changed_at)
         VALUES ($1, $2, $3, $4, $5, $6, nextval('revision'), now())`,
        [nameKey(username), username, linkedGamertag, sessionGamertag, bio, JSON.stringify(socialLinks)]
      )
    }
  }
}

const TABLES = ['presence', 'presence_latest', 'presence_day', 'achievement_unlock', 'scrape']

function peopleTables({ model }: BoardApi) {
  const { insert, empty } = model
  return {
    clearPeople: async (): Promise<void> => {
      await empty(TABLES)
    },
    /** Each fact is stored after an older one that is not merged. */
    storePresence: async (userKey: string, facts: readonly PresenceFact[]): Promise<void> => {
      const columns = ['user_key', 'field', 'value', 'value_key', 'ts', 'version']
      const key = ({ field, value }: PresenceFact) => (field === 'gamertag' ? nameKey(value) : '')
      const old = facts.map(({ field }) => [userKey, field, '7', '', time(7), '1'])
      await insert('presence_latest', columns, old)
      const rows = facts.map((fact) => [userKey, fact.field, fact.value, key(fact), time(fact.ms), '2'])
      await insert('presence_latest', columns, rows)
    },
    storeSightings: async (
      userKey: string,
      sightings: readonly { readonly ms: number; readonly isOnline: boolean; readonly game: string }[]
    ): Promise<void> => {
      await insert(
        'presence',
        ['user_key', 'ts', 'is_online', 'game', 'period_s', 'position'],
        sightings.map(({ ms, isOnline, game }, n) => [userKey, time(ms), isOnline, game, 60, n + 1])
      )
    },
    /** Each day is stored after an older state that is not merged. */
    storeDays: async (userKey: string, days: readonly Day[]): Promise<void> => {
      const columns = ['user_key', 'day', 'sightings', 'online_sightings', 'last_at', 'seconds', 'position']
      const old = days.map(({ date }) => [userKey, date, 9, 9, time(0), { old: 600 }, 1])
      await insert('presence_day', columns, old)
      const rows = days.map((day) => [userKey, day.date, day.sightings, day.onlineSightings, time(0), day.seconds, 2])
      await insert('presence_day', columns, rows)
    },
    storeUnlocks: async (
      userKey: string,
      unlocks: readonly { readonly id: number; readonly points: number; readonly ms: number }[]
    ): Promise<void> => {
      await insert(
        'achievement_unlock',
        ['user_key', 'achievement_id', 'username', 'points', 'ts', 'age'],
        unlocks.map(({ id, points, ms }) => [userKey, id, userKey, points, time(ms), 1])
      )
    },
    storeScrapes: async (
      scrapes: readonly { readonly source: string; readonly outcome: string; readonly ms: number }[]
    ): Promise<void> => {
      await insert(
        'scrape',
        ['source', 'ts', 'duration_ms', 'outcome', 'published', 'reason', 'position'],
        scrapes.map(({ source, outcome, ms }, n) => [source, time(ms), 1, outcome, 0, '', n])
      )
    }
  }
}
