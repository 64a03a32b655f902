/** Returns an instant for an address, in whole seconds. */
export const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** Returns the UTC day of an instant: `2026-11-07`. */
export const isoDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
