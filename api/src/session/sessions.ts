import { createHash } from 'node:crypto'
import { nameKey, Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import { shown } from '../http/request/parameters.js'
import type { AuthService, Verified } from '../remote/auth-service.js'
import { isSessionKey } from './session-key.js'

/** The user of a valid session key. */
export type Session = Verified & { readonly userKey: string }

/** Lifetime of the auth service's positive answers, and the maximum number of cached sessions. */
const CACHE_MS = 60_000
const CACHE_MAX = 10_000

export type SessionsNeeds = {
  readonly authService: Pick<AuthService, 'verify'>
  /**
   * Called when the auth service has identified a session, before the caller gets it; not called for a cached session.
   */
  readonly onVerified: (session: Session) => Promise<void>
  readonly metrics: SessionMetrics
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Outcomes of a key's check. */
export const JUDGEMENTS = ['valid', 'kept', 'invalid', 'unchecked'] as const
type Judgement = (typeof JUDGEMENTS)[number]
export type SessionMetrics = { readonly judged: (judgement: Judgement) => void }

/** Resolves session keys to users. Keys are stored only as hashes, and negative answers are never cached. */
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
   * Returns the session of a key; undefined for an invalid key. Concurrent callers with the same key share one request.
   * Rejects with `auth_away` when the auth service is unavailable, and with `username_unstable` for a name that
   * Unicode's NFKC changes.
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
