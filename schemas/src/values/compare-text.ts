/** Compares texts by UTF-16 units, the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
