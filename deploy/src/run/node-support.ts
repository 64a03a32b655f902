/** The last days of Node's lines: https://github.com/nodejs/Release. */
const LAST_DAY: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01'
}

/** Returns a sentence about a version of Node that gets no more fixes; undefined for a supported or a later one. */
export function endOfSupport(version: string, nowMs: number): string | undefined {
  const lastDay = LAST_DAY[Number.parseInt(version, 10)]
  if (lastDay === undefined || nowMs < Date.parse(lastDay) + 86_400_000) return undefined
  return `Node ${version} gets no security fixes since ${lastDay}. The service runs, but Node 24 is advised.`
}
