import { SharedRun } from '@gamenet/schemas'
import type { Versions } from '../http/request/resolved-url.js'
import { type Channel, type Format, stateFrame } from './channel.js'
import { RetriedRun } from './retried-run.js'

type Games = Readonly<Record<string, unknown>>

type LiveCountsNeeds = {
  readonly versions: Pick<Versions, 'onChange' | 'versionOf'>
  /** The answer of `/api/online-users`. */
  readonly compute: () => Promise<Games>
  readonly channels: () => Iterable<Channel>
  readonly onFailure: (error: unknown) => void
}

/** The newest counts of all games, computed once for all listeners: a state first, then what differs. */
export class LiveCounts {
  readonly #needs: LiveCountsNeeds
  readonly #unsubscribe: () => void
  readonly #computing = new SharedRun(() => this.#compute())
  readonly #updating: RetriedRun
  #version = -1
  /** JSON by name. */
  #games = new Map<string, string>()

  constructor(needs: LiveCountsNeeds) {
    this.#needs = needs
    this.#updating = new RetriedRun(() => this.#update(), needs.onFailure)
    this.#unsubscribe = needs.versions.onChange(() => this.#updating.after(0))
  }

  /** Whether there is a state, which differences keep current. */
  get isReady(): boolean {
    return this.#version !== -1
  }

  /** Makes a state. */
  ready(): Promise<void> {
    return this.#computing.run()
  }

  /** The whole state as a frame. */
  frame(format: Format): string {
    return stateFrame(format, 'state', objectOf(this.#games))
  }

  /** Computes nothing until somebody asks again. */
  rest(): void {
    this.#version = -1
  }

  close(): void {
    this.#unsubscribe()
    this.#updating.close()
  }

  async #update(): Promise<void> {
    if (this.isReady && this.#version !== this.#newest()) await this.#computing.run()
  }

  #newest(): number {
    return Math.max(...PROJECTIONS.map((projection) => this.#needs.versions.versionOf({ projection })))
  }

  async #compute(): Promise<void> {
    const version = this.#newest()
    const games = new Map(
      Object.entries(await this.#needs.compute()).map(([name, game]) => [name, JSON.stringify(game)])
    )
    const changed = new Map([...games].filter(([name, game]) => this.#games.get(name) !== game))
    const gone = [...this.#games.keys()].filter((name) => !games.has(name))
    this.#games = games
    this.#version = version
    if (changed.size === 0 && gone.length === 0) return
    const data = `{"changed":${objectOf(changed)},"gone":${JSON.stringify(gone)}}`
    const frames = { sse: stateFrame('sse', 'difference', data), ndjson: stateFrame('ndjson', 'difference', data) }
    const channels = [...this.#needs.channels()].filter(({ hasLiveCounts }) => hasLiveCounts)
    await Promise.all(channels.map((channel) => channel.send(frames)))
  }
}

/** What the counts are read from. */
const PROJECTIONS = ['title-latest', 'match-latest', 'title'] as const

function objectOf(games: ReadonlyMap<string, string>): string {
  return `{${[...games].map(([name, game]) => `${JSON.stringify(name)}:${game}`).join(',')}}`
}
