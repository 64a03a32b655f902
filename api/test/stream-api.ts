import { equal } from 'node:assert'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { nameKey, type ReaderPosition } from '@gamenet/schemas'
import { endpoints } from '../src/routes/endpoints.js'
import { type BoardApi, NOW_MS, openBoardApi, storeDescriptions, storeTitles } from './board-api.js'
import { time } from './stored-tables.js'
import { type Teardown, testApp } from './support/test-app.js'

export const FIRST_MS = NOW_MS - 3_600_000
export const TITLES = ['4d530001', '4d530002', '0000beef'] as const
const PLAYERS = ['ann', 'ANN', 'bob', '🎮 <b>'] as const

/** A recorded event of a test, as all filters see it. */
export type Recorded = {
  readonly kind: 'count' | 'title-count' | 'change' | 'record' | 'match' | 'achievement'
  readonly epoch: number
  readonly partition: number
  readonly offset: number
  readonly titleId?: string
  readonly leaderboardId?: number
  readonly player?: string
  /** Of a record: whether the board had one before. */
  readonly isContested?: boolean
  /** What names the event in its data. */
  readonly name: string
}

/** The log as tables, filled by hand: every kind in two partitions of two epochs. */
export class StreamWorld {
  readonly api: BoardApi
  readonly recorded: Recorded[] = []
  readonly #next = new Map<string, number>()
  #number = 0
  #version = 0

  constructor(api: BoardApi) {
    this.api = api
  }

  static async open(t: Teardown, given: Parameters<typeof openBoardApi>[1] = {}): Promise<StreamWorld> {
    const api = await openBoardApi(t, given)
    await storeTitles(api.model, { '4d530001': 'Halo', '4d530002': 'Fable' })
    await storeDescriptions(api.model, [['4d530001', 1, FIRST_MS, 'Laps', true]])
    await api.model.insert('record_history', ['title_id', 'leaderboard_id', 'version'], [['0000beef', 1, 1]])
    await api.changed('title', 'leaderboard', 'leaderboard-entry')
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    return new StreamWorld(api)
  }

  /** The API of another process on the same tables, with positions of its own. */
  static async reopen(
    t: Teardown,
    { api }: StreamWorld,
    positions: readonly ReaderPosition[] = []
  ): Promise<BoardApi['app']> {
    const { app } = await testApp(t, {
      endpoints,
      tables: api.model.clickhouse.readers,
      positions: async (_serving, names) => positions.filter(({ name }) => names.includes(name)),
      dataVersions: api.versions
    })
    return app
  }

  get port(): number {
    return (this.api.app.server.address() as AddressInfo).port
  }

  /** Records events drawn by `draw` (0 to 1), makes them readable and tells the API. */
  async record(count: number, draw: () => number, epoch = 1): Promise<void> {
    const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(draw() * values.length)] as Value
    const rows = new Map<string, unknown[][]>()
    const put = (table: string, row: unknown[]) => rows.set(table, [...(rows.get(table) ?? []), row])
    const reigns: { title: string; board: number; player: string; rating: string; at: string }[] = []
    for (let n = 0; n < count; n += 1) {
      const kind = pick(['count', 'title-count', 'change', 'match', 'achievement'] as const)
      // The events of a key are in one partition: of boards and titles, and of users.
      const titleId = pick(TITLES)
      const player = pick(PLAYERS)
      const user = `${nameKey(player)}${this.#number % 7}`
      const partition =
        kind === 'achievement' ? user.length % 2 : kind === 'count' ? pick([0, 1]) : titleId.charCodeAt(7) % 2
      const partitionId = `${kind}/${epoch}/${partition}`
      const offset = (this.#next.get(partitionId) ?? 0) + pick([0, 0, 0, 1, 3])
      this.#next.set(partitionId, offset + 1)
      this.#number += 1
      const at = time(FIRST_MS + this.#number * 1000)
      const head = [epoch, partition, offset, 'test', '', at, time(FIRST_MS + this.#number * 1000 + RECORDING_MS)]
      const event = { epoch, partition, offset }
      const name = String(this.#number)
      if (kind === 'count') {
        put('event_network_count', [...head, null, this.#number, 3])
        this.recorded.push({ kind, ...event, name })
      } else if (kind === 'title-count') {
        put('event_title_count', [...head, titleId, this.#number])
        this.recorded.push({ kind, ...event, titleId, name })
      } else if (kind === 'match') {
        put('event_match_list', [...head, titleId, [name], [2], [4]])
        this.recorded.push({ kind, ...event, titleId, name })
      } else if (kind === 'achievement') {
        const id = pick([1, 2, 3])
        const isFirst = !this.recorded.some((e) => e.kind === 'achievement' && e.name === `${user}/${id}`)
        put('event_achievement_unlock', [...head, nameKey(user), user, id, 5])
        if (!isFirst) continue
        const age = (~((BigInt(epoch) << 48n) | BigInt(offset)) & 0xffff_ffff_ffff_ffffn).toString()
        put('achievement_unlock', [nameKey(user), id, user, 5, at, age])
        this.recorded.push({ kind, ...event, player: user, name: `${user}/${id}` })
      } else {
        const leaderboardId = pick([1, 2])
        const isChange = draw() < 0.8
        put('event_leaderboard_entry', [...head, titleId, leaderboardId, player, nameKey(player)])
        const change = [epoch, partition, offset, isChange, 'updated', player, nameKey(player)]
        const values = [1, 2, 1, '5', name, 5, this.#number, true, 1]
        put('leaderboard_feed', [at, titleId, leaderboardId, epoch, partition, offset, ...change, ...values])
        if (!isChange) continue
        this.recorded.push({ kind, ...event, titleId, leaderboardId, player, name })
        if (draw() < 0.6) continue
        const isOfBoard = (e: Recorded) => e.titleId === titleId && e.leaderboardId === leaderboardId
        const isContested = this.recorded.some((e) => e.kind === 'record' && isOfBoard(e))
        reigns.push({ title: titleId, board: leaderboardId, player, rating: name, at })
        this.recorded.push({ kind: 'record', ...event, titleId, leaderboardId, player, isContested, name })
      }
    }
    for (const [table, lines] of rows) await this.api.model.insert(table, COLUMNS[table] ?? [], lines)
    await this.#storeReigns(reigns)
    this.#storePositions()
    await this.api.changed('network-count', 'title-count', 'leaderboard-entry', 'match-latest', 'title-latest')
  }

  /** Records one list of matches. */
  async list(hosts: readonly string[]): Promise<void> {
    const offset = this.#next.get('match/1/0') ?? 0
    this.#next.set('match/1/0', offset + 1)
    const counts = hosts.map(() => 1)
    await this.api.model.insert('event_match_list', COLUMNS.event_match_list ?? [], [
      [1, 0, offset, 'test', '', time(FIRST_MS), time(FIRST_MS + RECORDING_MS), TITLES[0], hosts, counts, counts]
    ])
    this.#storePositions()
    await this.api.changed('match-latest')
  }

  /** Records that an import was undone. */
  async retract(importId: string, topic: string, epoch = 1): Promise<void> {
    const partitionId = `retracted/${epoch}/0`
    const offset = this.#next.get(partitionId) ?? 0
    this.#next.set(partitionId, offset + 1)
    const columns = [...HEAD, 'retracted_import_id', 'topic']
    await this.api.model.insert('event_import_retraction', columns, [
      [epoch, 0, offset, 'test', '', time(FIRST_MS), time(FIRST_MS + RECORDING_MS), importId, topic]
    ])
    this.#storePositions()
    await this.api.changed('import-retraction')
  }

  readonly #reigns = new Map<string, { player: string; rating: string; at: string }[]>()

  async #storeReigns(
    reigns: readonly { title: string; board: number; player: string; rating: string; at: string }[]
  ): Promise<void> {
    this.#version += 1
    for (const { title, board, ...reign } of reigns) {
      const key = JSON.stringify([title, board])
      this.#reigns.set(key, [...(this.#reigns.get(key) ?? []), reign])
    }
    const columns = ['title_id', 'leaderboard_id', 'players', 'occurrences', 'ratings', 'times_ms', 'set_at', 'from_at']
    const rows = [...this.#reigns].map(([key, all]) => [
      ...JSON.parse(key),
      all.map(({ player }) => player),
      all.map(() => 1),
      all.map(({ rating }) => rating),
      all.map(({ rating }) => Number(rating)),
      all.map(({ at }) => at),
      all.map(({ at }) => at),
      all.map((_, n) => all[n + 1]?.at ?? null),
      this.#version + 1
    ])
    await this.api.model.insert('record_history', [...columns, 'to_at', 'version'], rows)
  }

  #storePositions(): void {
    const { positions } = this.api
    positions.length = 0
    for (const [partitionId, next] of this.#next) {
      const [kind = '', epoch, partition] = partitionId.split('/')
      for (const name of READERS[kind] ?? []) {
        positions.push({ name, epoch: Number(epoch), partition: Number(partition), next })
      }
    }
  }
}

/** Between an event and its recording by the log. */
const RECORDING_MS = 250
const HEAD = ['epoch', 'partition', 'offset', 'source', 'import_id', 'observed_at', 'recorded_at']
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  event_network_count: [...HEAD, 'registered', 'online', 'lobbies'],
  event_title_count: [...HEAD, 'title_id', 'online'],
  event_match_list: [...HEAD, 'title_id', 'hosts', 'players', 'max_players'],
  event_achievement_unlock: [...HEAD, 'user_key', 'username', 'achievement_id', 'points'],
  achievement_unlock: ['user_key', 'achievement_id', 'username', 'points', 'ts', 'age'],
  event_leaderboard_entry: [...HEAD, 'title_id', 'leaderboard_id', 'player', 'player_key'],
  leaderboard_feed: [
    ...['ts', 'title_id', 'leaderboard_id', 'recorded_epoch', 'recorded_partition', 'recorded_offset'],
    ...['epoch', 'partition', 'offset', 'is_change', 'change', 'player', 'player_key', 'previous_rank', 'new_rank'],
    ...['occurrence', 'previous_rating', 'new_rating', 'previous_time_ms', 'new_time_ms', 'is_time', 'version']
  ]
}
const READERS: Readonly<Record<string, readonly string[]>> = {
  count: ['load:network-count', 'project:network-count'],
  'title-count': ['load:title-count', 'project:title-count'],
  change: ['load:leaderboard-entry', 'project:leaderboard-entry'],
  match: ['load:match-list', 'project:match-latest'],
  achievement: ['load:achievement-unlock', 'project:achievement-unlock-feed'],
  retracted: ['load:import-retraction', 'project:import-retraction']
}

const WAIT_MS_MAX = 10_000

/** A received event: its cursor, kind and JSON. */
export type Received = { readonly cursor: string | undefined; readonly kind: string; readonly data: unknown }

/** A client that reads a stream byte by byte of the socket, as `curl -N` does. */
export class TestListener {
  readonly received: Received[] = []
  /** The head and the beginning of the body. */
  text = ''
  /** The newest cursor. */
  cursor: string | undefined
  readonly #socket: Socket
  #unread = ''
  #wake: () => void = () => undefined
  readonly closed: Promise<void>

  constructor(port: number, path: string, headers = '') {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
    this.#socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('utf8')
      if (this.text.length < 100_000) this.text += text
      this.#unread += text
      if (text.includes('\n\n')) this.#parse()
      this.#wake()
    })
    this.#socket.on('error', () => undefined)
    this.closed = new Promise((resolve) =>
      this.#socket.once('close', () => {
        resolve()
        this.#wake()
      })
    )
  }

  /** Resolves when it has received so many events, or a frame that satisfies. */
  async until(isDone: (listener: this) => boolean): Promise<void> {
    const waited = AbortSignal.timeout(WAIT_MS_MAX)
    waited.onabort = () => this.#wake()
    while (!isDone(this)) {
      if (this.#socket.closed || waited.aborted) {
        throw new Error(`It did not come: ${this.received.length} events, at the end ${this.text.slice(-800)}`)
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  resume(): void {
    this.#socket.resume()
  }

  pause(): void {
    this.#socket.pause()
  }

  disconnect(): void {
    this.#socket.destroy()
  }

  #parse(): void {
    const frames = this.#unread.split('\n\n')
    this.#unread = frames.pop() ?? ''
    for (const frame of frames) {
      const fields = new Map(
        frame.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()])
      )
      const cursor = fields.get('id')
      if (cursor !== undefined) this.cursor = cursor
      const data = fields.get('data')
      if (data !== undefined && data !== '')
        this.received.push({ cursor, kind: fields.get('event') ?? '', data: JSON.parse(data) })
    }
  }
}

/** What names a received event, as {@link Recorded} has it. Its `knownAt` is when the log took it. */
export function nameOf({ kind, data: event }: Received): string {
  const { data, happenedAt, knownAt } = event as {
    data: { matches: { hostName: string }[]; [name: string]: unknown }
    happenedAt: string
    knownAt: string
  }
  equal(Date.parse(knownAt) - Date.parse(happenedAt), RECORDING_MS)
  switch (kind) {
    case 'match':
      return String(data.matches[0]?.hostName)
    case 'achievement':
      return `${data.username}/${data.achievementId}`
    case 'change':
      return String(data.newRating)
    case 'record':
      return String(data.rating)
    default:
      return String(data.online_count)
  }
}
