/**
 * Any window of history, half-open. Without `to` it ends now; a text is ISO with `Z` or an offset, or a day of `tz`
 * (UTC).
 */
export type Window = {
  readonly from?: Date | string | undefined
  readonly to?: Date | string | undefined
  readonly tz?: string | undefined
}

/** The last days up to now, or a window. Not both. */
export type Days = Window & { readonly days?: number | undefined }

/** The instant by which everything in the answer was recorded; default: now. */
export type Known = { readonly knownAt?: Date | string | undefined }

/** The resolution of a series: `raw` for samples, or the width of a bucket in seconds, 60 to 604800. */
export type Resolution = { readonly resolution?: 'raw' | number | undefined }
