import { instantOf, Refusal, type SocialLink, type WriteSide, type WriteTransactions } from '@gamenet/schemas'
import type { ChatAccount } from '../remote/chat-platform.js'
import { type ProfileState, publishProfile } from './user.js'

/** The fields of an edit; an absent field stays unchanged. */
export type ProfileEdit = {
  readonly avatar_url?: string | undefined
  readonly avatar_hue?: number | null | undefined
  readonly display_name_override?: string | null | undefined
  readonly linked_gamertag?: string | undefined
  readonly bio?: string | undefined
  /** The chat account to link, as the platform has just returned it; null removes the account and the links. */
  readonly chat?: { readonly url: string; readonly account: ChatAccount } | null | undefined
  /** The account whose avatar becomes the profile's: the one that is linked after the edit. */
  readonly avatarOf?: ChatAccount | undefined
  /** Read only when the profile may have links. */
  readonly readLinks?: (() => SocialLink[]) | undefined
}

/** The profile of a user; undefined before a first verified session. */
export async function readProfile(writes: WriteSide, userKey: string): Promise<ProfileState | undefined> {
  const [state] = await writes.query<ProfileState>('SELECT p.* FROM profile AS p WHERE p.user_key = $1', [userKey])
  return state
}

/**
 * Edits a profile. Of two concurrent edits the later one wins in every common field; other fields are not changed.
 * @returns the profile after the edit and whether anything changed; undefined if the profile was deleted, or if another
 * account was linked since the avatar was requested
 */
export async function editProfile(
  writes: WriteTransactions,
  userKey: string,
  edit: ProfileEdit,
  nowMs: number
): Promise<{ state: ProfileState; isNew: boolean } | undefined> {
  return await writes.transaction(async (transaction) => {
    const [before] = await transaction.query<ProfileState>(
      'SELECT p.* FROM profile AS p WHERE p.user_key = $1 FOR NO KEY UPDATE',
      [userKey]
    )
    if (before === undefined) return undefined
    const after = edited(before, edit)
    if (after === undefined) return undefined
    if (JSON.stringify(after) === JSON.stringify(before)) return { state: before, isNew: false }
    const [state] = await transaction.query<ProfileState>(SAVE, [
      userKey,
      after.avatar_url,
      after.avatar_hue,
      after.display_name_override,
      after.linked_gamertag,
      after.bio,
      after.chat_profile_url,
      after.chat_id,
      after.chat_avatar,
      JSON.stringify(after.social_links),
      instantOf(nowMs)
    ])
    if (state === undefined) return undefined
    await publishProfile(transaction, state)
    return { state, isNew: true }
  })
}

function edited(before: ProfileState, edit: ProfileEdit): ProfileState | undefined {
  const after = { ...before, ...linked(before, edit.chat) }
  const { readLinks, avatarOf } = edit
  if (readLinks !== undefined) {
    if (after.chat_id === null) throw new Refusal('chat_link_missing')
    after.social_links = readLinks()
  }
  after.avatar_url = edit.avatar_url ?? after.avatar_url
  if (edit.avatar_hue !== undefined) after.avatar_hue = edit.avatar_hue
  if (edit.display_name_override !== undefined) after.display_name_override = edit.display_name_override
  after.linked_gamertag = edit.linked_gamertag ?? after.linked_gamertag
  after.bio = edit.bio ?? after.bio
  if (avatarOf === undefined) return after
  if (avatarOf.id !== after.chat_id) return undefined
  return { ...after, avatar_url: avatarOf.avatarUrl, chat_avatar: avatarOf.avatar }
}

function linked(before: ProfileState, chat: ProfileEdit['chat']): Partial<ProfileState> {
  if (chat === undefined) return {}
  if (chat === null) return { chat_profile_url: '', chat_id: null, chat_avatar: null, social_links: [] }
  const { url, account } = chat
  return { chat_profile_url: url, chat_id: account.id, chat_avatar: account.avatar, social_links: before.social_links }
}

const SAVE = `
  UPDATE profile AS p
  SET avatar_url = $2, avatar_hue = $3, display_name_override = $4, linked_gamertag = $5, bio = $6,
    chat_profile_url = $7, chat_id = $8, chat_avatar = $9, social_links = $10::text::jsonb,
    revision = nextval('revision'), changed_at = $11::text::timestamptz
  WHERE p.user_key = $1
  RETURNING p.*`
