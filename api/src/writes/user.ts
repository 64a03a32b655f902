import {
  hasOwnKey,
  instantOf,
  nameHashSql,
  nameKey,
  PEOPLE_LOCK,
  type ProfileChanged,
  profileTopic,
  Refusal,
  type SocialLink,
  type WriteChange,
  type WriteSide,
  type WriteTransactions
} from '@gamenet/schemas'
import type { Session } from '../session/sessions.js'
import { addToOutbox } from './outbox.js'

/** A row of `profile`. */
export type ProfileState = {
  user_key: string
  username: string
  avatar_url: string
  avatar_hue: number | null
  display_name_override: string | null
  linked_gamertag: string
  session_gamertag: string
  bio: string
  chat_profile_url: string
  chat_id: string | null
  chat_avatar: string | null
  social_links: SocialLink[]
  revision: string
  changed_at: Date
}

export type SaveNeeds = {
  readonly writes: WriteTransactions
  readonly nowMs: number
  changed(change: WriteChange): void
}

const ERASURE_RETRY_SECONDS = 5

/**
 * Stores the user of a verified session if the session has new data. A session does not store an erased user again
 * (`leave`); an edit or a rating does (`return`).
 */
export async function saveUser(needs: SaveNeeds, session: Session, ifErased: 'leave' | 'return'): Promise<void> {
  const { writes, nowMs, changed } = needs
  const { userKey, username, gamertag } = session
  const [known] = await writes.query<Pick<ProfileState, 'username' | 'session_gamertag'>>(
    'SELECT p.username, p.session_gamertag FROM profile AS p WHERE p.user_key = $1',
    [userKey]
  )
  if (known?.username === username && known.session_gamertag === gamertag) return
  const hasChanged = await writes.transaction(async (transaction) => {
    if (!(await mayBeStored(transaction, userKey, ifErased))) return false
    const [stored] = await transaction.query<ProfileState>(UPSERT_SESSION, [
      userKey,
      username,
      gamertag,
      instantOf(nowMs)
    ])
    if (stored !== undefined) await publishProfile(transaction, stored)
    return stored !== undefined
  })
  if (hasChanged) changed(['profile', userKey])
}

/**
 * Stores a row for a user known only from presence, so that ratings can refer to it. Answers do not change. Returns
 * false for an erased user.
 */
export async function saveSighted(needs: SaveNeeds, user: { userKey: string; username: string }): Promise<boolean> {
  return await needs.writes.transaction(async (transaction) => {
    if (!(await mayBeStored(transaction, user.userKey, 'leave'))) return false
    await transaction.query(INSERT_SIGHTED, [user.userKey, user.username, instantOf(needs.nowMs)])
    return true
  })
}

/** Publishes a profile in its current state to the log and to all listeners. */
export async function publishProfile(transaction: WriteSide, state: ProfileState): Promise<void> {
  await addToOutbox(transaction, profileTopic, eventOf(state), ['profile', state.user_key])
}

/**
 * Returns whether the gamertag that a user has linked is that of their last verified session. One that others may
 * share counts as none: folded, `Ａｎｎ` would be `Ann`.
 */
export function isConsoleVerified(state: Pick<ProfileState, 'linked_gamertag' | 'session_gamertag'>): boolean {
  const { linked_gamertag: linked, session_gamertag: verified } = state
  return linked !== '' && hasOwnKey(verified) && nameKey(linked) === nameKey(verified)
}

/** Returns the fields of a profile that answers and the log have in common. */
export function publicProfile(state: ProfileState) {
  return {
    avatar_url: state.avatar_url,
    avatar_hue: state.avatar_hue,
    chat_profile_url: state.chat_profile_url,
    display_name_override: state.display_name_override,
    linked_gamertag: state.linked_gamertag,
    console_verified: isConsoleVerified(state),
    bio: state.bio,
    social_links: state.social_links
  }
}

function eventOf(state: ProfileState): ProfileChanged {
  return {
    username: state.username,
    ...publicProfile(state),
    revision: Number(state.revision),
    changedAt: instantOf(state.changed_at.getTime())
  }
}

/**
 * Returns whether a row may be stored for a user. The shared lock blocks erasures until the transaction ends; the
 * following statement reads a snapshot taken under the lock, so it sees every erasure that has ended.
 */
async function mayBeStored(transaction: WriteSide, userKey: string, ifErased: 'leave' | 'return'): Promise<boolean> {
  await transaction.query('SELECT pg_advisory_xact_lock_shared($1)', [PEOPLE_LOCK])
  const [erasure] = await transaction.query<{ done_at: Date | null; returned_at: Date | null }>(
    `SELECT f.done_at, f.returned_at FROM erasure AS f WHERE f.name_hash = ${HASH}`,
    [userKey]
  )
  if (erasure === undefined || erasure.returned_at !== null) return true
  if (ifErased === 'leave') return false
  if (erasure.done_at === null) {
    throw new Refusal('erasure_in_progress', [], { retryAfterSeconds: ERASURE_RETRY_SECONDS })
  }
  await transaction.query(`UPDATE erasure AS f SET returned_at = now() WHERE f.name_hash = ${HASH}`, [userKey])
  return true
}

const HASH = `(SELECT ${nameHashSql('$1::text')} FROM erasure_salt AS s)`

const UPSERT_SESSION = `
  INSERT INTO profile AS p (user_key, username, session_gamertag, revision, changed_at)
  VALUES ($1, $2, $3, nextval('revision'), $4::text::timestamptz)
  ON CONFLICT (user_key) DO UPDATE
  SET username = excluded.username, session_gamertag = excluded.session_gamertag, revision = nextval('revision'),
    changed_at = excluded.changed_at
  WHERE (p.username, p.session_gamertag) IS DISTINCT FROM (excluded.username, excluded.session_gamertag)
  RETURNING p.*`

const INSERT_SIGHTED = `
  INSERT INTO profile (user_key, username, revision, changed_at)
  VALUES ($1, $2, nextval('revision'), $3::text::timestamptz)
  ON CONFLICT (user_key) DO NOTHING`
