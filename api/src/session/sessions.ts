import { createHash } from 'node:crypto'
import { hasOwnKey, isVisible, nameKey, Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import { shown } from '../http/request/parameters.js'
import type { AuthService, Verified } from '../remote/auth-service.js'
import type { Budget } from '../writes/budget.js'
import { isSessionKey } from './session-key.js'

/** The user of a valid session key. */
export type Session = Verified & { readonly userKey: string }

/** Lifetime of the auth service's positive answers, the same while it is unavailable, and the maximum number of cached sessions. */
const CACHE_MS = 60_000
const AWAY_CACHE_MS = 300_000
const CACHE_MAX = 10_000
/** Lifetime of negative answers: repeated requests with an ended key are common, and a key that becomes valid later is rare. */
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
   * While the auth service is unavailable, a key that it confirmed in the last five minutes keeps its session. Rejects with
   * `auth_away` for other keys then, with `session_checks_spent` for an unknown key beyond the budget of its address, and with
   * `username_unstable` for a name that others may share (`hasOwnKey`).
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
      const check = () => this.#ask(sessionKey, hash)
      const asked = cached === undefined ? this.#withinBudget(address, check) : this.#orKept(cached, check())
      flight = asked.finally(() => this.#flights.delete(hash))
      this.#flights.set(hash, flight)
    }
    return await flight
  }

  #isWithin(ms: number, sinceMs: number | undefined): boolean {
    return sinceMs !== undefined && Math.abs(this.#needs.now() - sinceMs) < ms
  }

  async #withinBudget(
    address: string | undefined,
    check: () => Promise<Session | undefined>
  ): Promise<Session | undefined> {
    const { checks, metrics, now } = this.#needs
    if (address === undefined) return await check()
    try {
      checks.take(address, now())
    } catch (error) {
      metrics.judged('refused')
      throw error
    }
    const session = await check()
    if (session !== undefined) checks.giveBack(address)
    return session
  }

  /** Returns the cached session if the auth service is unavailable and the session is not too old. */
  async #orKept({ session, checkedAtMs }: Cached, check: Promise<Session | undefined>): Promise<Session | undefined> {
    try {
      return await check
    } catch (error) {
      const isAway = error instanceof Refusal && error.code === 'auth_away'
      if (isAway && this.#isWithin(AWAY_CACHE_MS, checkedAtMs)) return session
      throw error
    }
  }

  async #ask(sessionKey: string, hash: string): Promise<Session | undefined> {
    const { authService, onVerified, metrics, now } = this.#needs
    const checkedAtMs = now()
    try {
      const verified = await authService.verify(sessionKey)
      if (verified === undefined) {
        this.#cached.delete(hash)
        this.#invalid.set(hash, checkedAtMs)
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

/** Profiles are keyed by folded names: `ｆｉｓｈ` would edit the profile of `fish`, and `İx` that of `i̇x`. */
function requireStableName({ username }: Verified): void {
  if (!hasOwnKey(username) || !isVisible(username)) throw new Refusal('username_unstable', [shown(username)])
}
