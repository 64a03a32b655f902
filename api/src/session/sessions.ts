import { createHash } from 'node:crypto'
import { nameKey, Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import { shown } from '../http/request/parameters.js'
import type { AuthService, Verified } from '../remote/auth-service.js'
import { isSessionKey } from './session-key.js'

/** Somebody who has shown a session key that is good. */
export type Session = Verified & { readonly userKey: string }

/** How long the auth service's yes is believed, and of how many sessions. */
const CACHE_MS = 60_000
const CACHE_MAX = 10_000

export type SessionsNeeds = {
  readonly authService: Pick<AuthService, 'verify'>
  /** Called when the auth service has identified a session, before the caller gets it; not called for a cached session. */
  readonly onVerified: (session: Session) => Promise<void>
  readonly metrics: SessionMetrics
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** How a key was judged. */
export const JUDGEMENTS = ['valid', 'kept', 'invalid', 'unchecked'] as const
type Judgement = (typeof JUDGEMENTS)[number]
export type SessionMetrics = { readonly judged: (judgement: Judgement) => void }

/** Who session keys belong to. Keys are known by their hashes alone, and a no is never kept. */
export class Sessions {
  readonly #needs: SessionsNeeds
  readonly #cached = new LRUCache<string, { readonly session: Session; readonly checkedAtMs: number }>({
    max: CACHE_MAX
  })
  readonly #flights = new Map<string, Promise<Session | undefined>>()

  constructor(needs: SessionsNeeds) {
    this.#needs = needs
  }

  /**
   * The session of a key; undefined when it has none. Concurrent callers with the same key wait for the same answer.
   * Rejects with `auth_away` when the auth service does not say, with `username_unstable` for a name that Unicode's NFKC changes.
   */
  async of(sessionKey: string): Promise<Session | undefined> {
    const { metrics, now } = this.#needs
    if (!isSessionKey(sessionKey)) {
      metrics.judged('invalid')
      return undefined
    }
    const hash = createHash('sha256').update(sessionKey).digest('base64url')
    const cached = this.#cached.get(hash)
    if (cached !== undefined && Math.abs(now() - cached.checkedAtMs) < CACHE_MS) {
      metrics.judged('kept')
      return cached.session
    }
    let flight = this.#flights.get(hash)
    if (flight === undefined) {
      flight = this.#ask(sessionKey, hash).finally(() => this.#flights.delete(hash))
      this.#flights.set(hash, flight)
    }
    return await flight
  }

  async #ask(sessionKey: string, hash: string): Promise<Session | undefined> {
    const { authService, onVerified, metrics, now } = this.#needs
    const checkedAtMs = now()
    try {
      const verified = await authService.verify(sessionKey)
      if (verified === undefined) {
        this.#cached.delete(hash)
        metrics.judged('invalid')
        return undefined
      }
      requireStableName(verified)
      const session = { ...verified, userKey: nameKey(verified.username) }
      await onVerified(session)
      this.#cached.set(hash, { session, checkedAtMs })
      metrics.judged('valid')
      return session
    } catch (error) {
      metrics.judged(error instanceof Refusal && error.code === 'username_unstable' ? 'invalid' : 'unchecked')
      throw error
    }
  }
}

/** Profiles are keyed by folded names: `ｆｉｓｈ` would edit the profile of `fish`. */
function requireStableName({ username }: Verified): void {
  if (username !== username.normalize('NFKC')) throw new Refusal('username_unstable', [shown(username)])
}
