import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { instantOf } from '@gamenet/schemas'
import { Chance } from '../simulate/chance.js'

const MINUTE_MS = 60_000
const MINUTES_A_PIECE = 20

export type CountFile = {
  readonly titleIds: readonly string[]
  /** The first minute, milliseconds since 1970. */
  readonly firstMs: number
  readonly minutes: number
}

/**
 * Writes a file for `gamenet import title-count`: titles × minutes rows, ordered by time; the counts of a title are a
 * random walk.
 */
export async function writeTitleCounts(path: string, format: 'csv.gz' | 'ndjson', counts: CountFile): Promise<void> {
  const pieces = Readable.from(format === 'csv.gz' ? csvPieces(counts) : ndjsonPieces(counts))
  const file = createWriteStream(path)
  if (format === 'csv.gz') await pipeline(pieces, createGzip({ level: 1 }), file)
  else await pipeline(pieces, file)
}

type Row = { titleId: string; observedAt: string; online: number; sessions: number; lobbyPlayers: number }

function* rowsOf({ titleIds, firstMs, minutes }: CountFile): Generator<Row[]> {
  const chance = new Chance(20_260_101)
  const online = titleIds.map((_, i) => Math.ceil(4000 / (i + 1)))
  for (let first = 0; first < minutes; first += MINUTES_A_PIECE) {
    const rows: Row[] = []
    for (let minute = first; minute < Math.min(minutes, first + MINUTES_A_PIECE); minute += 1) {
      const observedAt = instantOf(firstMs + minute * MINUTE_MS)
      for (const [i, titleId] of titleIds.entries()) {
        const before = online[i] ?? 0
        const now = Math.max(0, before + Math.round((chance.number() - 0.5) * Math.sqrt(before)))
        online[i] = now
        rows.push({ titleId, observedAt, online: now, sessions: now >> 3, lobbyPlayers: now >> 1 })
      }
    }
    yield rows
  }
}

function* csvPieces(counts: CountFile): Generator<string> {
  yield 'titleId,observedAt,online,sessions,lobbyPlayers\n'
  for (const rows of rowsOf(counts)) {
    yield rows
      .map((row) => `${row.titleId},${row.observedAt},${row.online},${row.sessions},${row.lobbyPlayers}\n`)
      .join('')
  }
}

function* ndjsonPieces(counts: CountFile): Generator<string> {
  for (const rows of rowsOf(counts)) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}
