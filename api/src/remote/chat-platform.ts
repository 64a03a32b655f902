import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { openRemote, type RemoteOptions } from './remote.js'

/** The address of the chat platform, and the accepted accounts. */
export type ChatSettings = Omit<RemoteOptions, 'url'> & {
  /** `CHAT_API_URL` */
  readonly apiUrl: string
  readonly token?: string | undefined
  /** Hosts whose `/users/<id>` is a profile; lower case. */
  readonly hosts: readonly string[]
  /** Template of an avatar's address, with `{id}` and `{avatar}`. */
  readonly avatarUrl?: string | undefined
}

/** An account of the chat platform. */
export type ChatAccount = {
  readonly id: string
  /** The platform's name of the picture; null without one. */
  readonly avatar: string | null
  /** The picture's address; "" without one. */
  readonly avatarUrl: string
}

export type ChatPlatform = {
  /** Returns the account's id and the canonical address of its profile; undefined for any other text. */
  readProfileUrl(given: string): { readonly id: string; readonly url: string } | undefined
  /** Returns the account; undefined if there is none. Rejects with `chat_away` when the platform is unavailable. */
  account(id: string): Promise<ChatAccount | undefined>
  close(): Promise<void>
}

/** Extracts only an id from the input; the address itself is never requested. */
const PROFILE_URL = /^https:\/\/([a-z0-9.-]+)\/users\/([0-9]{17,20})$/i
const AVATAR_LENGTH_MAX = 200

const Account = z.object({ id: z.string(), avatar: z.string().max(AVATAR_LENGTH_MAX).nullish() })

/** Opens the chat platform. Without settings every request is refused. */
export function openChatPlatform(settings: ChatSettings | undefined): ChatPlatform {
  if (settings === undefined) {
    return {
      readProfileUrl: (given) => readProfileUrl(given, undefined),
      account: async () => refuse(new Error('CHAT_API_URL is not set')),
      close: async () => undefined
    }
  }
  const { apiUrl, token, hosts, avatarUrl, ...options } = settings
  const remote = openRemote({ ...options, url: apiUrl })
  return {
    readProfileUrl: (given) => readProfileUrl(given, hosts),
    async account(id) {
      const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bot ${token}` }
      const found = await remote
        .ask({ path: `/users/${id}`, headers }, (status, json) => {
          if (status === 404 && typeof json === 'object') return 'unknown'
          const account = Account.safeParse(json)
          return status === 200 && account.success && account.data.id === id ? account.data : undefined
        })
        .catch(refuse)
      if (found === 'unknown') return undefined
      const avatar = found.avatar ?? null
      return { id, avatar, avatarUrl: pictureAddress(avatarUrl, id, avatar) }
    },
    close: () => remote.close()
  }
}

function readProfileUrl(given: string, hosts: readonly string[] | undefined) {
  const [, host = '', id = ''] = PROFILE_URL.exec(given) ?? []
  const known = host.toLowerCase()
  if (id === '' || hosts?.includes(known) === false) return undefined
  return { id, url: `https://${known}/users/${id}` }
}

function pictureAddress(template: string | undefined, id: string, avatar: string | null): string {
  if (template === undefined || avatar === null || avatar === '') return ''
  return template.replaceAll('{id}', id).replaceAll('{avatar}', encodeURIComponent(avatar))
}

function refuse(cause: unknown): never {
  throw new Refusal('chat_away', [], { cause })
}
