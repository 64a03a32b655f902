import { isDeepStrictEqual } from 'node:util'
import { SharedRun } from '@gamenet/schemas'
import type { Versions } from '../answers/resolved-url.js'
import { type Channel, type Format, stateFrame } from './channel.js'
import { RetriedRun } from './retried-run.js'

type Game = Readonly<Record<string, unknown>>
type Games = Readonly<Record<string, Game>>

type LiveCountsNeeds = {
  readonly versions: Pick<Versions, 'onChange' | 'versionOf'>
  /** The answer of `/api/online-users`. */
  readonly compute: () => Promise<Games>
  readonly channels: () => Iterable<Channel>
  readonly onFailure: (error: unknown) => void
}

/** The newest counts of all games, computed once for all listeners: a state, then differences. */
export class LiveCounts {
  readonly #needs: LiveCountsNeeds
  readonly #unsubscribe: () => void
  readonly #computing = new SharedRun(() => this.#compute())
  readonly #updating: RetriedRun
  #version = -1
  #games: Games = {}
  /** JSON of all games. */
  #state = '{}'

  constructor(needs: LiveCountsNeeds) {
    this.#needs = needs
    this.#updating = new RetriedRun(() => this.#update(), needs.onFailure)
    this.#unsubscribe = needs.versions.onChange(() => this.#updating.after(0))
  }

  /** Whether there is a state that is kept current. */
  get isReady(): boolean {
    return this.#version !== -1
  }

  /** Computes the state. */
  ready(): Promise<void> {
    return this.#computing.run()
  }

  /** Returns the whole state as a frame. */
  frame(format: Format): string {
    return stateFrame(format, 'state', this.#state)
  }

  /** Stops updates until the next `ready`. */
  rest(): void {
    this.#version = -1
  }

  close(): void {
    this.#unsubscribe()
    this.#updating.close()
  }

  async #update(): Promise<void> {
    if (!this.isReady || this.#version === this.#newest()) return
    if ([...this.#needs.channels()].some(({ hasLiveCounts }) => hasLiveCounts)) await this.#computing.run()
    else this.rest()
  }

  #newest(): number {
    return Math.max(...PROJECTIONS.map((projection) => this.#needs.versions.versionOf({ projection })))
  }

  async #compute(): Promise<void> {
    const version = this.#newest()
    const games = await this.#needs.compute()
    const changed = changedIn(games, this.#games)
    const gone = Object.keys(this.#games).filter((name) => !Object.hasOwn(games, name))
    this.#games = games
    this.#version = version
    if (Object.keys(changed).length === 0 && gone.length === 0) return
    this.#state = JSON.stringify(games)
    const data = JSON.stringify({ changed, gone })
    const frames = { sse: stateFrame('sse', 'difference', data), ndjson: stateFrame('ndjson', 'difference', data) }
    const channels = [...this.#needs.channels()].filter(({ hasLiveCounts }) => hasLiveCounts)
    await Promise.all(channels.map((channel) => channel.send(frames)))
  }
}

/** Projections that the counts are read from. */
const PROJECTIONS = ['title-latest', 'match-latest', 'title'] as const

/** Returns the games that differ, each with the fields that differ; a new game with all fields. */
function changedIn(games: Games, before: Games): Games {
  const changed = Object.entries(games).map(([name, game]) => {
    const known = Object.hasOwn(before, name) ? before[name] : undefined
    return [name, differing(game, known)] as const
  })
  return Object.fromEntries(changed.filter(([, fields]) => Object.keys(fields).length > 0))
}

function differing(game: Game, before: Game = {}): Game {
  return Object.fromEntries(Object.entries(game).filter(([field, value]) => !isDeepStrictEqual(value, before[field])))
}
