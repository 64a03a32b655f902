/*
 * ServiceAuth signs people in at the network's auth service, from any page:
 *
 *   const auth = new ServiceAuth()
 *   auth.on('error', ({ status, message }) => console.warn(status, message))
 *   await auth.login(email, password)
 *   const { friends } = await auth.getFriends()
 *
 * As `/service-auth.js` it is a script that sets `globalThis.ServiceAuth` and, where there is one, `module.exports`; as
 * `/service-auth.mjs` a module. It loads nothing and touches nothing of the page but one entry of its local storage.
 *
 * session   the key that the auth service gave at login, with the user's name
 * kept      an answer of the auth service that is given again for a minute, or until a refresh
 */

/** Filled in by the service that serves this file: `{auth_url}/api`. */
const DEFAULT_API_URL: string = ''

const DEFAULT_STORAGE_KEY = 'service_auth'
const TIMEOUT_MS = 20_000
const VERIFY_INTERVAL_MS = 300_000
/**
 * The auth service answers from its own copy, which only a refresh renews; more frequent requests return nothing new.
 */
const CACHE_MS = 60_000
/** Answers are not stored in the browser's cache; a redirect would send the session key to any address. */
const PRIVATELY = { cache: 'no-store', credentials: 'omit', redirect: 'error' } as const
/** Longer timers fire at once. */
const TIMER_MS_MAX = 2_147_483_647

export type ServiceAuthOptions = {
  /** Address of the auth service's API; by default the one that the server of this file is configured with. */
  readonly apiUrl?: string | undefined
  /** Name of the entry in local storage; `service_auth` by default. */
  readonly storageKey?: string | undefined
  /** Time limit of a request in milliseconds; 20,000 by default. */
  readonly timeoutMs?: number | undefined
}

export type ServiceAuthUser = { username: string; email: string }

export type ServiceAuthLogin = { success: true; user: ServiceAuthUser; sessionKey: string }

export type ServiceAuthFriend = {
  gamertag: string
  status: string
  isOnline: boolean
  /** Of friends who are online. */
  game?: string
  /** Of friends who are online: since how long, as text. */
  duration?: string
  /** Of friends who are offline: relative text. */
  lastSeen?: string
}

/** `lastPlayed` is relative text, such as `3 hours ago`. */
export type ServiceAuthGame = { title: string; lastPlayed: string; iconUrl: string }

/** When the auth service refreshed the list, milliseconds since 1970, and its length. */
type Listed = { lastUpdated: number; count: number }

export type ServiceAuthFriends = Listed & { friends: ServiceAuthFriend[] }

export type ServiceAuthGames = Listed & { games: ServiceAuthGame[] }

export type ServiceAuthProfile = Listed & {
  isOnline: boolean
  status: string
  game?: string
  timeOnline?: string
  gamesPlayed: ServiceAuthGame[]
}

export type ServiceAuthEvents = {
  login: (user: ServiceAuthUser) => void
  logout: () => void
  error: (error: ServiceAuthError) => void
}

/** The error of every failing method. */
export class ServiceAuthError extends Error {
  /** HTTP status; 0 without an answer or if nothing was sent, 401 also without a session. */
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ServiceAuthError'
    this.status = status
  }
}

/**
 * One person's session with the auth service. It is kept in local storage, or in memory if the browser refuses that,
 * and is read at every call, so that changes of other tabs apply at once. All methods but `isLoggedIn`, `on` and
 * `startAutoVerify` are async. A method that fails emits `error` and rejects with a {@link ServiceAuthError}; only
 * `verifySession` never rejects.
 */
export class ServiceAuth {
  readonly apiUrl: string
  readonly storageKey: string
  readonly #timeoutMs: number
  readonly #store: SessionStore
  readonly #listeners: { readonly [Name in keyof ServiceAuthEvents]: Set<ServiceAuthEvents[Name]> } = {
    login: new Set(),
    logout: new Set(),
    error: new Set()
  }
  readonly #cached = new Map<Noun, CachedSession>()
  #stopAutoVerify: () => void = () => undefined

  constructor({ apiUrl, storageKey, timeoutMs = TIMEOUT_MS }: ServiceAuthOptions = {}) {
    this.apiUrl = (apiUrl || DEFAULT_API_URL).replace(/\/+$/, '')
    this.storageKey = storageKey || DEFAULT_STORAGE_KEY
    this.#timeoutMs = timerMs('timeoutMs', timeoutMs)
    this.#store = new SessionStore(this.storageKey)
  }

  /** Begins a session, and replaces an existing one. Emits `login` with the user. */
  login(email: string, password: string): Promise<ServiceAuthLogin> {
    return this.#emittingErrors(async () => {
      const answer = await this.#ask('/auth/login', { body: { email, password } })
      const { username, sessionKey } = answer
      if (typeof username !== 'string' || typeof sessionKey !== 'string' || sessionKey === '') {
        throw new ServiceAuthError(200, 'The auth service answered the login without a user name or a session key.')
      }
      const user = { username, email: typeof answer.email === 'string' ? answer.email : email }
      this.#hold({ sessionKey, user })
      this.#emit('login', { ...user })
      return { success: true, user, sessionKey }
    })
  }

  /**
   * Ends the session here, emits `logout`, and ends it at the auth service. Rejects if the auth service could not be
   * notified: there the session then lasts until it expires.
   */
  logout(): Promise<void> {
    return this.#emittingErrors(async () => {
      const session = this.#store.read()
      this.#hold(undefined)
      const notified = session === undefined ? undefined : this.#notifyLogout(session.sessionKey)
      this.#emit('logout')
      await notified
    })
  }

  /** The logged-in user from local storage; null without a session. */
  async getUser(): Promise<ServiceAuthUser | null> {
    return this.#store.read()?.user ?? null
  }

  /** Returns whether there is a session key, without a request. */
  isLoggedIn(): boolean {
    return this.#store.read() !== undefined
  }

  /**
   * Checks the session with the auth service. Resolves with false if it is invalid, and deletes it; also if the check
   * fails, but then keeps the session and emits `error`. Never rejects.
   */
  async verifySession(): Promise<boolean> {
    const session = this.#store.read()
    if (session === undefined) return false
    const verdict = await this.#verdictOn(session.sessionKey)
    // A logout or login meanwhile, here or in another tab: the result is about a session that no longer exists.
    if (this.#store.read()?.sessionKey !== session.sessionKey) return this.verifySession()
    if (verdict === 'invalid') this.#hold(undefined)
    return verdict === 'valid'
  }

  /** Friends, those online with `game` and `duration`, the others with `lastSeen`. Cached for a minute. */
  getFriends(): Promise<ServiceAuthFriends> {
    return this.#get('friends')
  }

  /** Games played. Cached for a minute. */
  getGames(): Promise<ServiceAuthGames> {
    return this.#get('games')
  }

  /** Returns the user's presence on the network, and the games played. Cached for a minute. */
  getProfile(): Promise<ServiceAuthProfile> {
    return this.#get('profile')
  }

  /** Lets the auth service refresh the list, and returns it; the next two methods likewise. */
  refreshFriends(): Promise<ServiceAuthFriends> {
    return this.#refresh('friends')
  }

  refreshGames(): Promise<ServiceAuthGames> {
    return this.#refresh('games')
  }

  refreshProfile(): Promise<ServiceAuthProfile> {
    return this.#refresh('profile')
  }

  /** @deprecated Mutes are no longer available; the list is always empty. */
  async getMutes(): Promise<never[]> {
    return []
  }

  /**
   * Calls `listener` at every `login` (with the user), `logout` or `error` (with the error) from now on, until the
   * returned function is called. Throws a TypeError for any other event.
   */
  on<Name extends keyof ServiceAuthEvents>(name: Name, listener: ServiceAuthEvents[Name]): () => void {
    if (!Object.hasOwn(this.#listeners, name) || typeof listener !== 'function') {
      throw new TypeError(`on(${String(name)}) takes login, logout or error, and a function.`)
    }
    const listeners = this.#listeners[name]
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }

  /**
   * Verifies the session repeatedly, `intervalMs` after the answer of the last check, and calls `onVerified` with the
   * result. Returns a function that stops it; a second start replaces the first.
   */
  startAutoVerify(intervalMs: number = VERIFY_INTERVAL_MS, onVerified?: (isValid: boolean) => void): () => void {
    const waitMs = timerMs('intervalMs', intervalMs)
    this.#stopAutoVerify()
    let isStopped = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const check = async () => {
      const isValid = await this.verifySession()
      if (isStopped) return
      if (onVerified !== undefined) callSafely(() => onVerified(isValid))
      wait()
    }
    const wait = () => {
      if (!isStopped) timer = setTimeout(check, waitMs)
    }
    const stop = () => {
      isStopped = true
      clearTimeout(timer)
    }
    this.#stopAutoVerify = stop
    wait()
    return stop
  }

  async #notifyLogout(sessionKey: string): Promise<void> {
    try {
      // The request continues when the page is closed at `logout`.
      await this.#ask('/auth/logout', { body: { sessionKey }, sessionKey, keepalive: true })
    } catch (error) {
      // The auth service no longer knows the session, which is the goal.
      if (!(error instanceof ServiceAuthError && error.status === 401)) throw error
    }
  }

  async #verdictOn(sessionKey: string): Promise<'valid' | 'invalid' | 'unknown'> {
    try {
      const { valid } = await this.#ask('/auth/verify', { body: { sessionKey } })
      if (typeof valid === 'boolean') return valid ? 'valid' : 'invalid'
      throw new ServiceAuthError(200, 'The auth service did not say whether the session is valid.')
    } catch (cause) {
      const error = asServiceAuthError(cause)
      if (error.status === 401) return 'invalid'
      this.#emit('error', error)
      return 'unknown'
    }
  }

  #get<Answer>(noun: Noun): Promise<Answer> {
    return this.#emittingErrors(async () => {
      const sessionKey = this.#sessionKey()
      const cached = this.#cached.get(noun)
      if (cached?.sessionKey === sessionKey && performance.now() < cached.untilMs) return JSON.parse(await cached.text)
      const pending = this.#ask(`/auth/${noun}`, { sessionKey })
      const text = pending.then((answer) => JSON.stringify(listed(noun, answer)))
      const entry = { sessionKey, untilMs: performance.now() + CACHE_MS, text }
      this.#cached.set(noun, entry)
      try {
        return JSON.parse(await text)
      } catch (error) {
        if (this.#cached.get(noun) === entry) this.#cached.delete(noun)
        throw error
      }
    })
  }

  #refresh<Answer>(noun: Noun): Promise<Answer> {
    return this.#emittingErrors(async () => {
      const sessionKey = this.#sessionKey()
      const answer = listed(noun, await this.#ask(`/auth/refresh/${noun}`, { sessionKey, method: 'POST' }))
      const { success: _, ...fresh } = answer
      // Games come from the profile: cached answers of the other nouns may be older than this.
      this.#cached.clear()
      const text = Promise.resolve(JSON.stringify(fresh))
      this.#cached.set(noun, { sessionKey, untilMs: performance.now() + CACHE_MS, text })
      return answer as Answer
    })
  }

  #sessionKey(): string {
    const session = this.#store.read()
    if (session === undefined) throw new ServiceAuthError(401, 'Nobody is logged in; call login() first.')
    return session.sessionKey
  }

  #hold(session: Session | undefined): void {
    this.#cached.clear()
    this.#store.write(session)
  }

  async #ask(path: string, { method, body, sessionKey, keepalive = false }: Request): Promise<Answer> {
    if (this.apiUrl === '') {
      throw new ServiceAuthError(0, 'No auth service is configured; give its address: new ServiceAuth({ apiUrl }).')
    }
    const url = this.apiUrl + path
    const deadline = AbortSignal.timeout(this.#timeoutMs)
    const { response, text } = await exchange(url, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(sessionKey === undefined ? {} : { 'X-Session-Key': sessionKey })
      },
      body: body === undefined ? null : JSON.stringify(body),
      ...PRIVATELY,
      keepalive,
      signal: deadline
    }).catch((cause: unknown) => {
      const reason = deadline.aborted ? `did not answer within ${this.#timeoutMs} ms` : 'cannot be reached'
      throw new ServiceAuthError(0, `The auth service at ${this.apiUrl} ${reason}.`, { cause })
    })
    const answer = parsed(text)
    if (!response.ok || answer?.success === false) {
      const sentence = answer?.error
      const message = typeof sentence === 'string' ? sentence : `${url} answered HTTP status ${response.status}.`
      throw new ServiceAuthError(response.status, message)
    }
    if (answer !== undefined) return answer
    throw new ServiceAuthError(response.status, `${url} answered no JSON object; check apiUrl.`)
  }

  /** Runs a method's work; a failure is emitted to the listeners before the method rejects. */
  async #emittingErrors<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (cause) {
      const error = asServiceAuthError(cause)
      this.#emit('error', error)
      throw error
    }
  }

  #emit<Name extends keyof ServiceAuthEvents>(name: Name, ...values: Parameters<ServiceAuthEvents[Name]>): void {
    for (const listener of [...this.#listeners[name]]) {
      callSafely(() => (listener as (...values: unknown[]) => void)(...values))
    }
  }
}

export default ServiceAuth

type Session = { readonly sessionKey: string; readonly user: ServiceAuthUser }

type Noun = 'friends' | 'games' | 'profile'

/** The list field in the answer of each noun. */
const LIST_OF = { friends: 'friends', games: 'games', profile: 'gamesPlayed' } as const satisfies Record<Noun, string>

type Answer = Record<string, unknown>

/** An answer of one session as text, so that no caller can change another caller's copy. */
type CachedSession = { readonly sessionKey: string; readonly untilMs: number; readonly text: Promise<string> }

type Request = {
  readonly method?: 'POST'
  readonly body?: Record<string, unknown>
  readonly sessionKey?: string
  readonly keepalive?: boolean
}

/** The used part of the browser's storage. */
type BrowserStorage = {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** The session in local storage. Browsers can refuse reads or writes there, at any time: then it is in memory. */
class SessionStore {
  readonly #key: string
  /** The value that could not be written; valid until a write succeeds. */
  #unwritten: { readonly session: Session | undefined } | undefined

  constructor(key: string) {
    this.#key = key
  }

  read(): Session | undefined {
    if (this.#unwritten !== undefined) return this.#unwritten.session
    try {
      return sessionOf(browserStorage().getItem(this.#key))
    } catch {
      return undefined
    }
  }

  write(session: Session | undefined): void {
    try {
      if (session === undefined) browserStorage().removeItem(this.#key)
      else browserStorage().setItem(this.#key, JSON.stringify(session))
      this.#unwritten = undefined
    } catch {
      this.#unwritten = { session }
      if (session !== undefined) removeEntry(this.#key)
    }
  }
}

/** If a new session did not fit, the old one must not reappear on the next page. */
function removeEntry(key: string): void {
  try {
    browserStorage().removeItem(key)
  } catch {
    // Removal fails if writes do.
  }
}

/** Throws if the browser forbids it or has none. */
function browserStorage(): BrowserStorage {
  const { localStorage } = globalThis as { localStorage?: BrowserStorage }
  if (localStorage === undefined) throw new Error('There is no local storage here.')
  return localStorage
}

/** Any other content of the entry, such as another program's, is not a session. */
function sessionOf(text: string | null): Session | undefined {
  const { sessionKey, user } = (text === null ? undefined : parsed(text)) ?? {}
  if (typeof sessionKey !== 'string' || sessionKey === '' || typeof user !== 'object' || user === null) return undefined
  const { username, email } = user as Answer
  if (typeof username !== 'string' || typeof email !== 'string') return undefined
  return { sessionKey, user: { username, email } }
}

async function exchange(url: string, init: RequestInit): Promise<{ response: Response; text: string }> {
  const response = await fetch(url, init)
  return { response, text: await response.text() }
}

/** Returns the JSON object in a text; undefined if there is none. */
function parsed(text: string): Answer | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Answer) : undefined
  } catch {
    return undefined
  }
}

function listed(noun: Noun, answer: Answer): Answer {
  if (Array.isArray(answer[LIST_OF[noun]])) return answer
  throw new ServiceAuthError(200, `The auth service answered ${noun} without a list ${LIST_OF[noun]}; check apiUrl.`)
}

function asServiceAuthError(cause: unknown): ServiceAuthError {
  if (cause instanceof ServiceAuthError) return cause
  return new ServiceAuthError(0, cause instanceof Error ? cause.message : String(cause), { cause })
}

function timerMs(name: string, ms: number): number {
  if (Number.isFinite(ms) && ms >= 1) return Math.min(ms, TIMER_MS_MAX)
  throw new RangeError(`${name} is ${ms}; expected a number of milliseconds from 1.`)
}

/** A listener that throws must not affect the session; the browser reports it like any other error. */
function callSafely(call: () => void): void {
  try {
    call()
  } catch (error) {
    const { reportError } = globalThis as { reportError?: (error: unknown) => void }
    if (reportError === undefined) console.error(error)
    else reportError(error)
  }
}
