import { importRefused } from './import-refused.js'
import { type ReadTime, stored } from './import-time.js'

const QUARTER_MS = 900_000
const DAY_MS = 86_400_000

/** The walls of one series in one repeated hour, in the order of lines; `first`: how many are of the first pass. */
type Repeated = { readonly walls: number[]; first: number | undefined }

/**
 * Reads local times of a zone. When clocks go back, an hour is repeated: `see` collects its times before any row is
 * read, and the order of lines tells the two passes apart.
 */
export class LocalClock {
  readonly #tz: string
  readonly #format: Intl.DateTimeFormat
  /** By quarters of an hour: offsets change at none finer. */
  readonly #offsets = new Map<number, number>()
  readonly #repeated = new Map<string, Repeated>()
  #firstWall: number | undefined
  #lastWall = 0

  /** Throws `import_refused` for an unknown zone. */
  constructor(tz: string) {
    this.#tz = tz
    try {
      this.#format = new Intl.DateTimeFormat('en', { timeZone: tz, timeZoneName: 'longOffset' })
    } catch (error) {
      throw importRefused(`--tz is ${JSON.stringify(tz)}; expected a time zone, such as Europe/Berlin`, {
        cause: error
      })
    }
  }

  /** Takes note of a time of the series `key`, in the order of lines. */
  see(key: string, wallMs: number): void {
    this.#firstWall ??= wallMs
    this.#lastWall = wallMs
    const [first, second] = this.#instantsOf(wallMs)
    if (first === undefined || second === undefined) return
    const turn = this.#turnOf(key, first)
    const repeated = this.#repeated.get(turn)
    if (repeated === undefined) this.#repeated.set(turn, { walls: [wallMs], first: undefined })
    else repeated.walls.push(wallMs)
  }

  /** Returns the reader of one pass over the rows that `see` has seen. */
  reader(): (key: string, wallMs: number) => ReadTime {
    const isDescending = this.#lastWall < (this.#firstWall ?? 0)
    const sign = isDescending ? -1 : 1
    const taken = new Map<string, number>()
    for (const repeated of this.#repeated.values()) {
      const { walls } = repeated
      const steps = walls.flatMap((wall, n) => (n > 0 && (wall - (walls[n - 1] ?? 0)) * sign <= 0 ? [n] : []))
      repeated.first = steps.length === 1 ? steps[0] : undefined
    }
    return (key, wallMs) => {
      const [first, second] = this.#instantsOf(wallMs)
      if (first === undefined) return { fault: `clocks in ${this.#tz} skip this time; give times with their offset` }
      if (second === undefined) return stored(first)
      const turn = this.#turnOf(key, first)
      const n = taken.get(turn) ?? 0
      taken.set(turn, n + 1)
      const border = this.#repeated.get(turn)?.first
      if (border !== undefined) return stored(n < border === isDescending ? second : first)
      return {
        fault:
          `clocks in ${this.#tz} show this time twice, and the order of lines does not tell which one is meant; ` +
          'sort the rows by time, or give times with their offset'
      }
    }
  }

  /** Identifies a repeated hour of a series by the quarter in which the clock goes back. */
  #turnOf(key: string, firstMs: number): string {
    const offset = this.#offsetAt(firstMs)
    let at = firstMs
    while (this.#offsetAt(at) === offset) at += QUARTER_MS
    return `${key} ${Math.floor(at / QUARTER_MS)}`
  }

  /** Returns the instants at which clocks show a time: one, two of a repeated hour, or none. */
  #instantsOf(wallMs: number): number[] {
    const offsets = new Set([this.#offsetAt(wallMs - DAY_MS), this.#offsetAt(wallMs + DAY_MS)])
    return [...offsets]
      .map((offset) => wallMs - offset)
      .filter((ms) => this.#offsetAt(ms) === wallMs - ms)
      .sort((a, b) => a - b)
  }

  #offsetAt(ms: number): number {
    const quarter = Math.floor(ms / QUARTER_MS)
    const known = this.#offsets.get(quarter)
    if (known !== undefined) return known
    const name = this.#format.formatToParts(quarter * QUARTER_MS).find(({ type }) => type === 'timeZoneName')?.value
    const [, sign, hours, minutes, seconds = 0] = /GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?/.exec(name ?? '') ?? []
    const size = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60 + Number(seconds)
    const offset = (sign === '-' ? -1000 : 1000) * size
    this.#offsets.set(quarter, offset)
    return offset
  }
}
