import type { Fold } from './folding/fold.js'

/** The pure functions of projections of form `fold`, by the projection's name. */
export const folds: Readonly<Record<string, Fold>> = {}
