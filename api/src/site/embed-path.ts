/** Returns the embed of a page of this site. Only letters that need no escape in an attribute are let through. */
export function embedPath(url: string): string | undefined {
  const path = url.replace(/^https?:\/\/[^/]+/, '').replace(/[?#].*$/, '')
  const [, board] = /^\/games\/([0-9a-f]{8}\/[^/]+\/boards\/\d+)$/.exec(path) ?? []
  if (board !== undefined) return `/embed/boards/${board.replace(/\/[^/]+\/boards\//, '/')}`
  const [, game] = /^\/games\/([0-9a-f]{8})(?:\/[^/]*)?$/.exec(path) ?? []
  if (game !== undefined) return `/embed/games/${game}`
  const [, player] = /^\/players\/([\w.~%-]+)$/.exec(path) ?? []
  if (player !== undefined) return `/embed/players/${player}`
  return path === '/' || path === '' ? '/embed/network' : undefined
}
