import { bytesText, instantOf, type Lobby, type MatchesListed, millisecondsOf } from '@gamenet/schemas'
import { importRefused } from './import-refused.js'
import type { Gathered, Gathering } from './importable.js'

/** Memory limit for the rows of one file, about five million rows. */
const BYTES_MAX = 200 * 2 ** 20
/** A list and its map entry; an interned host name takes the same, plus two bytes per character. */
const LIST_BYTES = 120
const HOST_BYTES = 140
/** Four numbers, doubled because growing arrays double. */
const ROW_BYTES = 40
/** With names of 500 characters, a list of this size takes 5.6 MB; the log accepts messages of 16 MB. */
const LOBBIES_MAX = 10_000
const ROWS_AT_FIRST = 4096

/** The lobby of one flat row. Without a host it records only that its title was observed. */
type LobbyPart = {
  readonly titleId: string
  readonly observedAt: string
  readonly hostName?: string | undefined
  /** -1 when the lobby is closed. */
  readonly currentPlayers: number
  readonly maxPlayers?: number
}

type List = { readonly titleId: string; readonly ms: number; readonly line: number; rows: number; first: number }

/**
 * Combines flat rows to lists by title and instant; the last row of a host in a list counts. Memory is bounded: a file
 * that exceeds the limit is refused.
 */
export function matchListGathering({ bytesMax = BYTES_MAX }: { readonly bytesMax?: number } = {}): Gathering {
  const lists: List[] = []
  const listByTitle = new Map<string, Map<number, number>>()
  const hosts = internedNames()
  const rows = lobbyRows()

  const listOf = (titleId: string, ms: number, line: number): number => {
    let listAt = listByTitle.get(titleId)
    if (listAt === undefined) {
      listAt = new Map()
      listByTitle.set(ownCopy(titleId), listAt)
    }
    const known = listAt.get(ms)
    if (known !== undefined) return known
    const title = lists.at(-1)?.titleId === titleId ? (lists.at(-1)?.titleId ?? titleId) : ownCopy(titleId)
    listAt.set(ms, lists.length)
    lists.push({ titleId: title, ms, line, rows: 0, first: 0 })
    return lists.length - 1
  }

  return {
    add(part, line) {
      const { titleId, observedAt, hostName, currentPlayers, maxPlayers = 0 } = part as LobbyPart
      const number = listOf(titleId, millisecondsOf(observedAt), line)
      const list = lists[number]
      if (list !== undefined) list.rows += 1
      rows.add(number, hostName === undefined ? NO_HOST : hosts.numberOf(hostName), currentPlayers, maxPlayers)
      const bytes = lists.length * LIST_BYTES + hosts.bytes() + rows.length() * ROW_BYTES
      if (bytes <= bytesMax) return
      throw importRefused(
        `The rows up to line ${line} make ${lists.length} lists of ${rows.length()} lobbies, and more exceed the ` +
          `limit: ${bytesText(bytesMax)} per import; nothing was published of them. Split ` +
          'the file by time, all rows of one instant into the same part, and import the parts one after the other'
      )
    },
    *finish() {
      const grouped = rows.byList(lists)
      const inOrder = lists.toSorted((a, b) => a.ms - b.ms || (a.titleId < b.titleId ? -1 : 1))
      for (const list of inOrder) yield gathered(list, rows.lobbies(grouped, list, hosts.nameOf))
    }
  }
}

const NO_HOST = 0xffff_ffff

function gathered({ titleId, ms, line, rows }: List, matches: Lobby[]): Gathered {
  const observedAt = instantOf(ms)
  if (matches.length > LOBBIES_MAX) {
    const count = `${matches.length} lobbies; at most ${LOBBIES_MAX} are accepted`
    const fault = `the list of ${titleId} at ${observedAt} has ${count}`
    return { fault, line, rows }
  }
  return { event: { titleId, observedAt, matches } satisfies MatchesListed, rows }
}

/** Stores the numbers of rows in arrays: 20 bytes per row, against 100 as an object. */
function lobbyRows() {
  let length = 0
  let columns = freeRows(ROWS_AT_FIRST)
  return {
    length: () => length,
    add(list: number, host: number, players: number, size: number) {
      if (length === columns.list.length) {
        const wider = freeRows(2 * length)
        for (const name of COLUMNS) wider[name].set(columns[name])
        columns = wider
      }
      columns.list[length] = list
      columns.host[length] = host
      columns.players[length] = players
      columns.size[length] = size
      length += 1
    },
    /** Returns the indexes of rows grouped by list, in file order, and sets the start of each list. */
    byList(lists: readonly List[]): Uint32Array {
      let first = 0
      for (const list of lists) {
        list.first = first
        first += list.rows
      }
      const next = Uint32Array.from(lists, (list) => list.first)
      const grouped = new Uint32Array(length)
      for (let row = 0; row < length; row += 1) {
        const list = columns.list[row] ?? 0
        const place = next[list] ?? 0
        grouped[place] = row
        next[list] = place + 1
      }
      return grouped
    },
    lobbies(grouped: Uint32Array, list: List, nameOf: (host: number) => string): Lobby[] {
      const rowOfHost = new Map<number, number>()
      for (const row of grouped.subarray(list.first, list.first + list.rows)) {
        const host = columns.host[row] ?? NO_HOST
        if (host !== NO_HOST) rowOfHost.set(host, row)
      }
      return [...rowOfHost].flatMap(([host, row]) => {
        const currentPlayers = columns.players[row] ?? 0
        if (currentPlayers < 0) return []
        return [{ hostName: nameOf(host), currentPlayers, maxPlayers: columns.size[row] ?? 0 }]
      })
    }
  }
}

const COLUMNS = ['list', 'host', 'players', 'size'] as const

function freeRows(rows: number) {
  return {
    list: new Uint32Array(rows),
    host: new Uint32Array(rows),
    // Wide enough for every count and for -1.
    players: new Float64Array(rows),
    size: new Uint32Array(rows)
  }
}

/** Stores every name once: the same hosts occur in successive lists. */
function internedNames() {
  const numbers = new Map<string, number>()
  const names: string[] = []
  let bytes = 0
  return {
    bytes: () => bytes,
    nameOf: (number: number) => names[number] ?? '',
    numberOf(name: string): number {
      const known = numbers.get(name)
      if (known !== undefined) return known
      const own = ownCopy(name)
      numbers.set(own, names.length)
      names.push(own)
      bytes += HOST_BYTES + 2 * name.length
      return names.length - 1
    }
  }
}

/** Copies a text: a substring of a block would keep the whole block in memory. */
const ownCopy = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le')
