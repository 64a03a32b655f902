/*
 * What the answers about matches mean, computed from the lists alone with loops and maps: no SQL, no rollup.
 */

export type PlainLobby = { readonly host: string; readonly players: number; readonly max: number }

/** The lobbies of one title at one instant; a later list of the same instant replaces it. */
export type PlainList = { readonly ms: number; readonly lobbies: readonly PlainLobby[] }

export type PlainMatch = {
  readonly host: string
  readonly nth: number
  readonly firstMs: number
  readonly lastMs: number
  readonly peak: number
  readonly max: number
  readonly sum: number
  readonly sightings: number
}

/** The lists that count, oldest first. */
export function listsOf(facts: readonly PlainList[]): PlainList[] {
  return [...new Map(facts.map((list) => [list.ms, list])).values()].sort((a, b) => a.ms - b.ms)
}

/** Every match, found lobby by lobby: it begins where the list before has no n-th lobby of its host, and goes on while one has. */
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
          peak: Math.max(...players),
          max: Math.max(...sights.map((sight) => sight.max)),
          sum: players.reduce((sum, each) => sum + each, 0),
          sightings: sights.length
        }
      ]
    })
  )
}
