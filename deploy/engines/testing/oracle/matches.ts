/*
 * The matches of a title, computed only from its lists, with loops and maps: no SQL, no rollup.
 */

export type PlainLobby = { readonly host: string; readonly players: number; readonly max: number }

/** The lobbies of one title at one instant; a later list of the same instant replaces it. */
export type PlainList = { readonly ms: number; readonly lobbies: readonly PlainLobby[] }

export type PlainMatch = {
  readonly host: string
  readonly nth: number
  readonly firstMs: number
  readonly lastMs: number
  readonly peakPlayers: number
  readonly maxPlayers: number
  readonly playersSum: number
  readonly sightings: number
}

/** Returns one list per instant, oldest first: of several the last one. */
export function newestLists<List extends { readonly ms: number }>(lists: readonly List[]): List[] {
  return [...new Map(lists.map((list) => [list.ms, list])).values()].sort((a, b) => a.ms - b.ms)
}

/** Returns every match: it begins where the list before has no n-th lobby of its host, and ends where a list has none. */
export function matchesOf(lists: readonly PlainList[]): PlainMatch[] {
  const nthLobby = (at: number, host: string, nth: number) =>
    lists[at]?.lobbies.filter((lobby) => lobby.host === host)[nth - 1]
  return lists.flatMap(({ ms, lobbies }, at) =>
    lobbies.flatMap(({ host }, place) => {
      const nth = lobbies.slice(0, place + 1).filter((lobby) => lobby.host === host).length
      if (nthLobby(at - 1, host, nth) !== undefined) return []
      const sights: PlainLobby[] = []
      let lastMs = ms
      for (let n = at; ; n += 1) {
        const lobby = nthLobby(n, host, nth)
        if (lobby === undefined) break
        sights.push(lobby)
        lastMs = lists[n]?.ms ?? lastMs
      }
      const players = sights.map((sight) => sight.players)
      return [
        {
          host,
          nth,
          firstMs: ms,
          lastMs,
          peakPlayers: Math.max(...players),
          maxPlayers: Math.max(...sights.map((sight) => sight.max)),
          playersSum: players.reduce((sum, each) => sum + each, 0),
          sightings: sights.length
        }
      ]
    })
  )
}
