import { titleKey } from '@gamenet/schemas'

/** Returns the names most similar to a text, best first: by the share of pairs of characters that both have (Dice). */
export function nearestNames(text: string, names: readonly string[], limit: number): string[] {
  const wanted = pairsOf(text)
  return names
    .map((name) => ({ name, similarity: similarity(wanted, pairsOf(name)) }))
    .filter(({ similarity }) => similarity > 0)
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, limit)
    .map(({ name }) => name)
}

/** Returns the pairs of characters in a name; blanks around it make its beginning and end count. */
function pairsOf(name: string): ReadonlySet<string> {
  const padded = ` ${titleKey(name)} `
  return new Set(Array.from({ length: padded.length - 1 }, (_, n) => padded.slice(n, n + 2)))
}

function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of a) if (b.has(pair)) shared += 1
  return (2 * shared) / (a.size + b.size)
}
