/**
 * What a board or a list shows now is its newest event, so that one from the future would hide all that comes until
 * then; a minute is what clocks differ by.
 */
export const AHEAD_OF_NOW_MS_MAX = 60_000
