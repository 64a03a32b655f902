import { type Projection, projections } from '@gamenet/projector'
import type { SqlProjection } from '@gamenet/projector/internals'
import { type Topic, titleCountTopic } from '@gamenet/schemas'
import { type PlainFold, plainFolds } from './plain-folds.js'

/*
 * A later version of the program: one of its projections has the next version and computes other rows, so its tables are rebuilt.
 */

const ADDED = 1000
const CHANGED = 'title-count'

const changed = projections.flatMap((each): SqlProjection[] =>
  each.form !== 'fold' && each.name === CHANGED
    ? [
        {
          ...each,
          version: 2,
          select: each.select.replaceAll(/\s+/g, ' ').trim().replace('e.online,', `e.online + ${ADDED},`)
        }
      ]
    : []
)

/** The projections of the current and of the later program. */
export const anyProjections: readonly Projection[] = [...projections, ...changed]

/** Returns the later program's version of these projections. */
export function newerOf(own: readonly Projection[]): readonly Projection[] {
  return own.map((each) => changed.find(({ name }) => name === each.name) ?? each)
}

/** The plain folds of changed statements, by their text. */
export const newerFolds: Readonly<Record<string, PlainFold>> = Object.fromEntries(
  changed.map(({ name, select }) => [
    select,
    (facts) => (plainFolds[name]?.(facts) ?? []).map((row) => ({ ...row, online: Number(row.online) + ADDED }))
  ])
)

/** The schema version of the later program: messages with it become dead letters, and a retry reads them. */
const LATER_VERSION = titleCountTopic.version + 1

/** The message type of the later program. */
export const LATER_TYPE = `gamenet.${titleCountTopic.name}.v${LATER_VERSION}`

/** The topics with retried messages, as a later program reads them. */
export const laterTopics: readonly Topic[] = [{ ...titleCountTopic, version: LATER_VERSION } as Topic]
