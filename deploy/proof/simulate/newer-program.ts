import { type Projection, projections } from '@gamenet/projector'
import type { SqlProjection } from '@gamenet/projector/internals'
import { type PlainFold, plainFolds } from './plain-folds.js'
import { plain } from './statement-names.js'

/*
 * A program that came later: one of its projections makes other rows, so that what a rebuild by it puts in the place of what
 * served is seen.
 */

const ADDED = 1000
const CHANGED = 'title-count'

const changed = projections.flatMap((each): SqlProjection[] =>
  each.form !== 'fold' && each.name === CHANGED
    ? [{ ...each, select: plain(each.select.replace('e.online,', `e.online + ${ADDED},`)) }]
    : []
)

/** Every projection that a program of this installation may have: those of now, and those of later. */
export const anyProjections: readonly Projection[] = [...projections, ...changed]

/** A later program's projections. */
export function newerOf(own: readonly Projection[]): readonly Projection[] {
  return own.map((each) => changed.find(({ name }) => name === each.name) ?? each)
}

/** How changed statements fold, by their text. */
export const newerFolds: Readonly<Record<string, PlainFold>> = Object.fromEntries(
  changed.map(({ name, select }) => [
    select,
    (facts) => (plainFolds[name]?.(facts) ?? []).map((row) => ({ ...row, online: Number(row.online) + ADDED }))
  ])
)
