import { Refusal, Username } from '@gamenet/schemas'
import { z } from 'zod'
import { CIRCUIT_OPEN_MS, openRemote, type RemoteOptions } from './remote.js'

/** The user of a session, according to the auth service. */
export type Verified = { readonly username: string; readonly gamertag: string }

export type AuthService = {
  /**
   * Returns the user of a session key; undefined for an invalid key. Rejects with `auth_away` when the auth service is
   * unavailable.
   */
  verify(sessionKey: string): Promise<Verified | undefined>
  close(): Promise<void>
}

const GAMERTAG_LENGTH_MAX = 200

const Valid = z.object({
  valid: z.literal(true),
  username: Username,
  gamertag: z
    .string()
    .max(GAMERTAG_LENGTH_MAX)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u)
    .nullish()
})
const Invalid = z.union([z.object({ valid: z.literal(false) }), z.object({ error: z.string() })])

/** Opens the auth service at `{auth_url}`; without it, no session can be verified. */
export function openAuthService(options: RemoteOptions | undefined): AuthService {
  if (options === undefined)
    return { verify: async () => refuse(new Error('AUTH_URL is not set')), close: async () => undefined }
  const remote = openRemote({ ...options, hasCallers: true })
  return {
    async verify(sessionKey) {
      const found = await remote
        .ask({ path: '/api/auth/verify', body: { sessionKey } }, (status, json) => {
          const valid = Valid.safeParse(json)
          if (status === 200 && valid.success) return valid.data
          return status === 401 && Invalid.safeParse(json).success ? 'invalid' : undefined
        })
        .catch(refuse)
      return found === 'invalid' ? undefined : { username: found.username, gamertag: found.gamertag ?? '' }
    },
    close: () => remote.close()
  }
}

function refuse(cause: unknown): never {
  throw new Refusal('auth_away', [], { retryAfterSeconds: CIRCUIT_OPEN_MS / 1000, cause })
}
