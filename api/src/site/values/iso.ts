/** Returns an instant for an address, in whole seconds. */
export function iso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** Returns the UTC day of an instant: `2026-11-07`. */
export function isoDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
