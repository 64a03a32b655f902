import { createHash } from 'node:crypto'
import { hasOwnKey, isVisible, nameKey, Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import type { AuthService, Verified } from '../remote/auth-service.js'
import { shown } from '../request/parameters.js'
import { isSessionKey } from '../request/session-key.js'
import type { Budget } from './budget.js'

/** The user of a valid session key. */
export type Session = Verified & { readonly userKey: string }

/**
 * Lifetime of the auth service's positive answers, the same while it is unavailable, and the maximum number of them.
 */
const CACHE_MS = 60_000
const AWAY_CACHE_MS = 300_000
const CACHE_MAX = 10_000
/** Lifetime of negative answers: an ended key is often sent again, and hardly any becomes valid later. */
const INVALID_CACHE_MS = 10_000
const INVALID_CACHE_MAX = 100_000

export type SessionsNeeds = {
  readonly authService: Pick<AuthService, 'verify'>
  /**
   * Called when the auth service has identified a session, before the caller gets it; not called for a cached session.
   */
  readonly onVerified: (session: Session) => Promise<void>
  /** The checks of keys that each address may cause; those that identify a user are free. */
  readonly checks: Budget
  readonly metrics: SessionMetrics
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Outcomes of a key's check. */
export const JUDGEMENTS = ['valid', 'kept', 'invalid', 'unchecked', 'refused'] as const
type Judgement = (typeof JUDGEMENTS)[number]
export type SessionMetrics = { readonly judged: (judgement: Judgement) => void }

type Cached = { readonly session: Session; readonly checkedAtMs: number }
type Check = { readonly hash: string; readonly cached: Cached | undefined; readonly address: string | undefined }

/** Resolves session keys to users. Keys are stored only as hashes. */
export class Sessions {
  readonly #needs: SessionsNeeds
  readonly #cached = new LRUCache<string, Cached>({ max: CACHE_MAX })
  /** The instant of the negative answer by hash. */
  readonly #invalid = new LRUCache<string, number>({ max: INVALID_CACHE_MAX })
  readonly #flights = new Map<string, Promise<Session | undefined>>()

  constructor(needs: SessionsNeeds) {
    this.#needs = needs
  }

  /**
   * Returns the session of a key; undefined for an invalid key. Concurrent callers with the same key share one request.
   * While the auth service is unavailable, a key that it confirmed in the last five minutes keeps its session. Rejects
   * with `auth_away` for other keys then, with `session_checks_spent` for an unknown key beyond the budget of its
   * address, and with `username_unstable` for a name that others may share (`hasOwnKey`).
   * @param address by which the client is limited; undefined for none
   */
  async of(sessionKey: string, address: string | undefined): Promise<Session | undefined> {
    const { metrics } = this.#needs
    const hash = createHash('sha256').update(sessionKey).digest('base64url')
    if (!isSessionKey(sessionKey) || this.#isWithin(INVALID_CACHE_MS, this.#invalid.get(hash))) {
      metrics.judged('invalid')
      return undefined
    }
    const cached = this.#cached.get(hash)
    if (cached !== undefined && this.#isWithin(CACHE_MS, cached.checkedAtMs)) {
      metrics.judged('kept')
      return cached.session
    }
    let flight = this.#flights.get(hash)
    if (flight === undefined) {
      flight = this.#ask(sessionKey, { hash, cached, address }).finally(() => this.#flights.delete(hash))
      this.#flights.set(hash, flight)
    }
    return await flight
  }

  #isWithin(ms: number, sinceMs: number | undefined): boolean {
    return sinceMs !== undefined && Math.abs(this.#needs.now() - sinceMs) < ms
  }

  async #ask(sessionKey: string, { hash, cached, address }: Check): Promise<Session | undefined> {
    const { authService, onVerified, checks, metrics, now } = this.#needs
    const checkedAtMs = now()
    const spender = cached === undefined ? address : undefined
    try {
      if (spender !== undefined) checks.take(spender, checkedAtMs)
      const verified = await authService.verify(sessionKey)
      if (verified === undefined) {
        this.#cached.delete(hash)
        this.#invalid.set(hash, checkedAtMs)
        metrics.judged('invalid')
        return undefined
      }
      requireStableName(verified)
      if (spender !== undefined) checks.giveBack(spender)
      const session = { ...verified, userKey: nameKey(verified.username) }
      await onVerified(session)
      this.#cached.set(hash, { session, checkedAtMs })
      metrics.judged('valid')
      return session
    } catch (error) {
      const code = error instanceof Refusal ? error.code : undefined
      metrics.judged(JUDGED_BY[code ?? ''] ?? 'unchecked')
      if (code === 'auth_away' && cached !== undefined && this.#isWithin(AWAY_CACHE_MS, cached.checkedAtMs))
        return cached.session
      throw error
    }
  }
}

const JUDGED_BY: Readonly<Record<string, Judgement>> = { username_unstable: 'invalid', session_checks_spent: 'refused' }

/** Profiles are keyed by folded names: `ｆｉｓｈ` would edit the profile of `fish`, and `İx` that of `i̇x`. */
function requireStableName({ username }: Verified): void {
  if (!hasOwnKey(username) || !isVisible(username)) throw new Refusal('username_unstable', [shown(username)])
}
