import { BIO_LENGTH_MAX, EditedProfile, nameKey, Refusal, SOCIAL_LINKS_MAX, type SocialLink } from '@gamenet/schemas'
import { z } from 'zod'
import type { Action, ActionContext } from '../answers/endpoint.js'
import type { ChatAccount, ChatPlatform } from '../remote/chat-platform.js'
import {
  bodyField,
  bodyInteger,
  bodyObjects,
  isName,
  isProse,
  NAME_PATTERN,
  PROSE_PATTERN,
  strictFields,
  TRIMMED_NAME_PATTERN
} from '../request/body.js'
import { parseInput, shown } from '../request/parameters.js'
import { isPublicHost } from '../request/public-address.js'
import { type ProfileEdit, readProfile, editProfile as storeEdit } from '../writes/profile.js'
import { type ProfileState, publicProfile, saveUser } from '../writes/user.js'
import { usernameParameter } from './known-user.js'

const URL_LENGTH_MAX = 2048
const NAME_LENGTH_MAX = 64
const CHAT_URL_LENGTH_MAX = 300
/** An edit is retried when the profile was created or linked concurrently. */
const TRIES_MAX = 3

const HTTPS = '[Hh][Tt][Tt][Pp][Ss]://[^/].*'

const textField = (
  allowed: string,
  limits: { readonly minLength?: number; readonly maxLength: number; readonly pattern: string },
  isAllowed: (given: string) => boolean
) =>
  bodyField(allowed, { type: 'string', ...limits }, (raw) =>
    typeof raw === 'string' && isAllowed(raw) ? raw : undefined
  )

const oneName = textField(
  `1 to ${NAME_LENGTH_MAX} characters on one line`,
  { minLength: 1, maxLength: NAME_LENGTH_MAX, pattern: NAME_PATTERN },
  (given) => isName(given, NAME_LENGTH_MAX)
)

/** Read only when the profile may have links. */
const Links = z.object({
  social_links: bodyObjects(
    'links',
    { min: 0, max: SOCIAL_LINKS_MAX, isStrict: true },
    {
      platform: oneName,
      url: textField(
        `an https address of a public host of at most ${URL_LENGTH_MAX} characters`,
        { maxLength: URL_LENGTH_MAX, pattern: `^${HTTPS}$` },
        isHttpsAddress
      ),
      label: oneName.optional()
    }
  )
})

const shape = {
  avatar_url: textField(
    `"" or an https address of a public host of at most ${URL_LENGTH_MAX} characters`,
    { maxLength: URL_LENGTH_MAX, pattern: `^(${HTTPS})?$` },
    (given) => given === '' || isHttpsAddress(given)
  )
    .optional()
    .describe('The address of a picture; "" for none.'),
  avatar_hue: orNull(bodyInteger({ min: 0, max: 359 }))
    .optional()
    .describe('Colour of the drawn avatar, in degrees.'),
  chat_profile_url: bodyField(
    'the address of a profile on the chat platform, or "" to unlink it',
    { type: 'string', maxLength: CHAT_URL_LENGTH_MAX },
    (raw) => (typeof raw === 'string' && raw.length <= CHAT_URL_LENGTH_MAX ? raw : undefined)
  )
    .optional()
    .describe('Verified with the platform; "" clears it and social_links.'),
  display_name_override: bodyField(
    `1 to ${NAME_LENGTH_MAX} characters on one line, or null`,
    { type: ['string', 'null'], minLength: 1, maxLength: NAME_LENGTH_MAX, pattern: TRIMMED_NAME_PATTERN },
    readDisplayName
  )
    .optional()
    .describe('Trimmed; null shows the username instead.'),
  linked_gamertag: textField(
    `"" or 1 to ${NAME_LENGTH_MAX} characters on one line`,
    { maxLength: NAME_LENGTH_MAX, pattern: NAME_PATTERN },
    (given) => given === '' || isName(given, NAME_LENGTH_MAX)
  )
    .optional()
    .describe('The name on boards; "" for none.'),
  bio: bodyField(
    `at most ${BIO_LENGTH_MAX} characters without control characters but line breaks, and without bidirectional ` +
      `controls`,
    { type: 'string', maxLength: BIO_LENGTH_MAX, pattern: PROSE_PATTERN },
    (raw) => (typeof raw === 'string' && isProse(raw, BIO_LENGTH_MAX) ? raw : undefined)
  ).optional(),
  sync_avatar_from_chat: bodyField('true or false', { type: 'boolean' }, (raw) =>
    typeof raw === 'boolean' ? raw : undefined
  )
    .optional()
    .describe('True copies the avatar of the linked chat account once, instead of `avatar_url`.'),
  social_links: z
    .unknown()
    .optional()
    .meta({
      ...jsonSchemaOf(Links.shape.social_links),
      description: 'Requires a linked and verified chat profile; replaces all links.'
    })
}

type Fields = z.infer<ReturnType<typeof strictFields<typeof shape>>>

/** `PATCH /api/profile/:username`: a user edits their own profile. */
export const editProfile: Action<{ username: string }, Fields> = {
  operationId: 'editProfile',
  path: '/api/profile/:username',
  method: 'PATCH',
  tags: ['Profiles'],
  summary: 'Edit your own profile',
  description:
    'Only given fields change; of two concurrent edits the later one wins in each. Text is stored as sent, including ' +
    'HTML: escape it before display.',
  parameters: z.object({ username: usernameParameter }),
  body: strictFields(shape).meta({ id: 'EditProfileBody' }),
  bodyExample: { bio: 'Racing since 2004.', linked_gamertag: 'Lucky Badger' },
  permit: ({ username }, session) => {
    if (nameKey(String(username)) !== session.userKey) {
      throw new Refusal('profile_not_owned', [shown(String(username))])
    }
  },
  act: (_parameters, fields, context) => edit(fields, context),
  response: EditedProfile,
  refuses: ['profile_not_owned', 'chat_link_missing', 'chat_profile_unknown', 'chat_away']
}

/** `PUT /api/profile/:username`: the same; fields that are not given stay. */
export const putProfile: Action<{ username: string }, Fields> = {
  ...editProfile,
  operationId: 'putProfile',
  method: 'PUT',
  summary: 'Edit your own profile, by another method'
}

async function edit(fields: Fields, context: ActionContext): Promise<EditedProfile> {
  const { session, chat, writes, nowMs } = context
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const before = await readProfile(writes, session.userKey)
    if (before === undefined) {
      await saveUser(context, session, 'return')
      continue
    }
    const wanted = await wantedEdit(fields, before, chat)
    const stored = await storeEdit(writes, session.userKey, wanted, nowMs)
    if (stored === undefined) continue
    if (stored.isNew) context.changed(['profile', session.userKey])
    return shownTo(stored.state, wanted.avatarOf !== undefined)
  }
  throw new Refusal('engine_busy')
}

/** Queries the chat platform before the transaction begins, so that only the caller waits for it. */
async function wantedEdit(fields: Fields, before: ProfileState, chat: ChatPlatform): Promise<ProfileEdit> {
  const { chat_profile_url: chatUrl, sync_avatar_from_chat: isSynced, social_links: links, ...plain } = fields
  const linked = chatUrl === undefined ? undefined : await linkedChat(chatUrl, chat)
  const avatarOf = isSynced === true ? await accountAfter(linked, before, chat) : undefined
  const readLinks = links === undefined ? undefined : (): SocialLink[] => readSocialLinks(links)
  return { ...plain, chat: linked, avatarOf, readLinks }
}

async function linkedChat(given: string, chat: ChatPlatform): Promise<NonNullable<ProfileEdit['chat']> | null> {
  if (given === '') return null
  const address = chat.readProfileUrl(given)
  if (address === undefined) {
    throw new Refusal('chat_profile_unknown', [`is not a profile address of the chat platform: ${shown(given)}`])
  }
  const account = await chat.account(address.id)
  if (account === undefined) throw new Refusal('chat_profile_unknown', [`belongs to no account: ${shown(given)}`])
  return { url: address.url, account }
}

async function accountAfter(
  linked: ProfileEdit['chat'],
  before: ProfileState,
  chat: ChatPlatform
): Promise<ChatAccount> {
  if (linked !== undefined && linked !== null) return linked.account
  const account = linked === null || before.chat_id === null ? undefined : await chat.account(before.chat_id)
  if (account !== undefined) return account
  throw new Refusal('request_invalid', ['sync_avatar_from_chat needs a linked chat profile that still exists'])
}

function readSocialLinks(given: unknown): SocialLink[] {
  return parseInput(Links, { social_links: given }).social_links.map(({ platform, url, label }) => ({
    platform,
    url,
    ...(label === undefined ? {} : { label })
  }))
}

function shownTo(state: ProfileState, isSynced: boolean): EditedProfile {
  return {
    ...publicProfile(state),
    sync_avatar_from_chat: isSynced
  }
}

/**
 * Returns whether an address has only valid characters, so that a page can put it into an attribute, no credentials,
 * and a public host.
 */
function isHttpsAddress(given: string): boolean {
  if (given.length > URL_LENGTH_MAX || /[\p{C}\p{Z}"<>\\^`{|}]/u.test(given) || !/^https:\/\/[^/]/i.test(given)) {
    return false
  }
  const address = URL.canParse(given) ? new URL(given) : undefined
  return address !== undefined && address.username === '' && address.password === '' && isPublicHost(address)
}

function readDisplayName(raw: unknown): string | null | undefined {
  if (raw === null) return null
  const name = typeof raw === 'string' ? raw.trim() : ''
  return isName(name, NAME_LENGTH_MAX) ? name : undefined
}

function orNull<Value>(schema: z.ZodType<Value>) {
  return schema.nullable()
}

function jsonSchemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return described
}
