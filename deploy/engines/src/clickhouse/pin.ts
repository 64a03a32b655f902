import { errorMessage, pause, Refusal, withSignals, withTimeout } from '@gamenet/schemas'
import { byLane, type ClickHouse, type Lane, type LaneName, type Replica } from './clickhouse.js'
import { Identity } from './identity.js'
import { type ClickHouseServer, type ClickHouseServerOptions, openAsker, openClickHouseServer } from './server.js'
import { ended } from './slots.js'

/*
 * pin    the one address of a list of replicas that this process speaks to. What one replica has shown, another may not
 *        have yet: so all statements of a process go to one, until it fails
 * look   one question to an address, on a new connection: which server is there, and how it is
 */

export type PinnedOptions = Omit<ClickHouseServerOptions, 'url' | 'onServer'> & {
  /** Addresses of replicas of one database, the preferred one first. */
  readonly urls: readonly string[]
  /** Called with warnings. */
  readonly warn?: ((sentence: string) => void) | undefined
  /** For tests. */
  readonly looks?: LookTimes | undefined
}

export type LookTimes = { readonly pauseMs?: number; readonly silenceMs?: number }

const LOOK_PAUSE_MS = 3000
const LOOK_SILENCE_MS = 3500
/** The pinned replica has failed after as many looks in a row. */
const FAILED_LOOKS_MAX = 3
/** A replica that is further behind is not used: waits for its rows would end without them. */
const DELAY_SECONDS_MAX = 60
const RETRY_SECONDS = 5

/** Which server is at an address and, for a list, which database and how far behind. */
const LOOK = `SELECT serverUUID() AS server,
  (SELECT any(d.engine) FROM system.databases AS d WHERE d.name = currentDatabase()) AS engine`
const LOOK_AT_REPLICA = `${LOOK},
  (SELECT toString(any(t.uuid)) FROM system.tables AS t
   WHERE t.database = currentDatabase() AND t.name = 'schema_migration') AS database,
  (SELECT countIf(r.is_readonly) FROM system.replicas AS r WHERE r.database = currentDatabase()) AS readonly,
  (SELECT max(r.absolute_delay) FROM system.replicas AS r WHERE r.database = currentDatabase()) AS delay`
/** The UUID of a table that is missing. */
const NONE = '00000000-0000-0000-0000-000000000000'
/** The engine of a database whose servers share their tables: each answers with all rows. */
const SHARED = 'Shared'

type Address = {
  readonly options: ClickHouseServerOptions
  /** Host and port, without user and password. */
  readonly name: string
  readonly asker: ReturnType<typeof openAsker>
  /** By the names in answers, and by UUID: servers of one host may share their name, and old ones have no UUID. */
  readonly identities: readonly [Identity, Identity]
  fault: string | undefined
  /** The engine of the database, once it is known. */
  engine: string | undefined
  /** The UUID of `schema_migration`, which is the same on all replicas; another one is another database. */
  database: string
}

/**
 * Opens one of several replicas, the first healthy one, and another when that fails; with one address, that server.
 * While none is healthy, statements are refused with `engine_away`. Sends no request before the first statement.
 */
export const openPinned = (options: PinnedOptions): ClickHouse => {
  const pin = new Pin(options)
  const lane = (name: LaneName): Lane => ({
    execute: async (...statement) => (await pin.server())[name].execute(...statement),
    rows: async (...statement) => (await pin.server())[name].rows(...statement),
    json: async (...statement) => (await pin.server())[name].json(...statement),
    stream: async (...statement) => (await pin.server())[name].stream(...statement),
    insert: async (...rows) => (await pin.server())[name].insert(...rows),
    sync: async (tables) => (await pin.server())[name].sync(tables)
  })
  return {
    ...byLane(lane),
    version: async () => (await pin.server()).version(),
    stats: () => pin.last.stats(),
    replicas: () => pin.replicas(),
    close: () => pin.close()
  }
}

class Pin {
  readonly #options: PinnedOptions
  readonly #addresses: readonly Address[]
  readonly #isList: boolean
  readonly #closing = new AbortController()
  /** The address of {@link last}. */
  #at: Address
  #isPinned: boolean
  /** Whether this process may have shown rows of a replica: the next one must have them. */
  #hasServed = false
  #failedLooks = 0
  #database: string | undefined
  #rounds: Promise<void> | undefined
  #watching: Promise<void> | undefined
  /** The server that is or was pinned. */
  last: ClickHouseServer

  constructor(options: PinnedOptions) {
    this.#options = options
    this.#addresses = options.urls.map((url) => this.#addressOf(url))
    const [first] = this.#addresses
    if (first === undefined) throw new Error('A list of replicas names none; expected at least one address.')
    this.#isList = this.#addresses.length > 1
    this.#isPinned = !this.#isList
    this.#at = first
    this.last = openClickHouseServer(first.options)
  }

  /** Resolves with the server to use. */
  async server(): Promise<ClickHouseServer> {
    if (this.#watching === undefined) {
      this.#watching = this.#watch()
    }
    // The first choice is waited for. Later ones are the failure of a server.
    if (!this.#isPinned && !this.#hasServed) await this.#rounds
    if (!this.#isPinned) throw this.#away()
    this.#hasServed = true
    return this.last
  }

  replicas(): readonly Replica[] {
    return this.#addresses.map((address) => ({
      address: address.name,
      isPinned: this.#isPinned && address === this.#at,
      fault: address.fault
    }))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#watching
    await this.last.close()
    for (const { asker } of this.#addresses) await asker.close()
  }

  async #watch(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await this.#look()
      await pause(this.#options.looks?.pauseMs ?? LOOK_PAUSE_MS, this.#closing.signal, { ref: false })
    }
  }

  /** Looks, and pins another address if necessary; one round at a time. */
  #look(): Promise<void> {
    this.#rounds ??= this.#round().finally(() => {
      this.#rounds = undefined
    })
    return this.#rounds
  }

  async #round(): Promise<void> {
    await Promise.all(this.#addresses.map((address) => this.#lookAt(address)))
    if (this.#closing.signal.aborted) return
    this.#refuseForeign()
    const healthy = this.#addresses.filter(({ fault }) => fault === undefined)
    if (this.#isPinned) {
      this.#failedLooks = this.#at.fault === undefined ? 0 : this.#failedLooks + 1
      // Without another one, its own statements say what it cannot do.
      if (this.#failedLooks < FAILED_LOOKS_MAX || healthy.length === 0) return
      await this.#leave(String(this.#at.fault))
    }
    for (const address of healthy) if (await this.#pin(address)) return
  }

  /** Uses a server, once it has everything that this process may have shown. */
  async #pin(address: Address): Promise<boolean> {
    await this.last.abandon(this.#away())
    const server = openClickHouseServer(address.options)
    const fault = this.#hasServed ? await this.#lacksOf(server) : undefined
    if (fault !== undefined || this.#closing.signal.aborted) {
      address.fault = fault
      await server.close()
      return false
    }
    if (this.#hasServed) this.#options.warn?.(`The tables are now those of ${address.name}.`)
    this.#at = address
    this.last = server
    this.#failedLooks = 0
    this.#isPinned = true
    return true
  }

  async #lacksOf(server: ClickHouseServer): Promise<string | undefined> {
    const end = () => void server.abandon(this.#away())
    this.#closing.signal.addEventListener('abort', end, { once: true })
    try {
      return await server.syncAll().then(
        () => undefined,
        (error: unknown) => `lacks rows that this process has shown: ${messageOf(error)}`
      )
    } finally {
      this.#closing.signal.removeEventListener('abort', end)
    }
  }

  /** Ends everything that runs on the pinned server: it begins again on the next one. */
  #leave(fault: string): Promise<void> {
    const reason = `${this.#at.name} ${fault}`
    this.#options.warn?.(`The tables are not read from ${this.#at.name} any more: ${reason}.`)
    this.#isPinned = false
    return this.last.abandon(this.#away(reason))
  }

  async #lookAt(address: Address): Promise<void> {
    const silenceMs = this.#options.looks?.silenceMs ?? LOOK_SILENCE_MS
    const fault = await withSignals([this.#closing.signal], async (giveUp) => {
      const asked = address.asker.ask(this.#isList ? LOOK_AT_REPLICA : LOOK, giveUp.signal)
      await withTimeout(ended(asked), silenceMs, () =>
        giveUp.abort(new Error(`no answer within ${silenceMs / 1000} s`))
      )
      return await asked.then(
        (bytes) => this.#faultOf(address, new TextDecoder().decode(bytes).trim().split('\t')),
        // A single server that fails says so in each statement.
        (error: unknown) => (this.#isList ? `cannot be used: ${messageOf(error)}` : undefined)
      )
    })
    address.fault = severalAt(address) ?? fault
  }

  #faultOf(address: Address, [server = '', engine, database = NONE, readonly = '0', delay = '0']: string[]) {
    address.engine = engine
    address.database = database
    if (server !== NONE) this.#see(address, 1, server)
    if (address === this.#at && this.#isPinned && database !== NONE) this.#database ??= database
    if (this.#database !== undefined && database !== this.#database)
      return (
        `is another database: its table schema_migration has the UUID ${database}, ` +
        `and that of the others ${this.#database}`
      )
    if (Number(readonly) > 0) return `is read-only (${readonly} tables): it has no ZooKeeper or Keeper`
    if (Number(delay) > DELAY_SECONDS_MAX) return `is ${delay} s behind the other replicas`
    return undefined
  }

  /** Before one is pinned, each of two databases may be the wrong one. */
  #refuseForeign(): void {
    if (this.#database !== undefined || !this.#isList) return
    const made = this.#addresses.filter(({ fault, database }) => fault === undefined && database !== NONE)
    const isOne = new Set(made.map(({ database }) => database)).size <= 1
    for (const address of this.#addresses) {
      if (!isOne && made.includes(address))
        address.fault =
          `has the database ${address.database}, by the UUID of schema_migration; the addresses have to name ` +
          'replicas of one database'
      else if (isOne && made.length > 0 && address.fault === undefined && address.database === NONE)
        address.fault = 'lacks the tables that another one has'
    }
  }

  /** What runs on a server that another one has replaced begins again; two that take turns are refused. */
  #see(address: Address, by: 0 | 1, name: string): void {
    const seen = address.identities[by].see(name)
    if (seen === 'same' || address !== this.#at || !this.#isPinned || address.engine === SHARED) return
    void this.#leave(severalAt(address) ?? `is another server now, ${name}`)
    void this.#rounds?.then(() => this.#look())
    void this.#look()
  }

  #addressOf(url: string): Address {
    const { urls: _, warn: __, looks, ...options } = this.#options
    const onServer = (name: string) => this.#see(address, 0, name)
    const address: Address = {
      options: { ...options, url, onServer },
      name: new URL(url).host,
      asker: openAsker({ ...options, url, onServer }, 2 * (looks?.silenceMs ?? LOOK_SILENCE_MS)),
      identities: [new Identity(), new Identity()],
      fault: undefined,
      engine: undefined,
      database: NONE
    }
    return address
  }

  #away(reason?: string): Refusal {
    const faults = this.#addresses.flatMap(({ name, fault }) => (fault === undefined ? [] : [`${name} ${fault}`]))
    const cause = new Error(reason ?? (faults.join('; ') || 'another replica is being chosen'))
    return new Refusal('engine_away', ['The tables'], { retryAfterSeconds: RETRY_SECONDS, cause })
  }
}

/** The fault of an address that has a balancer. Servers that share their tables may have one. */
const severalAt = ({ engine, identities }: Address): string | undefined => {
  const names = identities.map(({ several }) => several).find((each) => each !== undefined)
  return names === undefined || engine === SHARED
    ? undefined
    : `answers as the servers ${names} in turn, so a balancer is in front of them: list their own addresses instead`
}

/** Returns the reason of a refusal, which names the tables only. */
const messageOf = (error: unknown): string =>
  errorMessage(error instanceof Refusal && error.cause !== undefined ? error.cause : error)
