import { RebuildRefused, type RebuildState, type RebuildStatus } from './contract.js'

/**
 * Every change of a rebuild's state: from which states, to which, and its author. `swapping` and `rolling-back` are
 * transient: a crash in them is completed later. `cancelled`, `dropped` and `rolled-back` are ends.
 */
export const CHANGES = {
  pause: { from: ['filling'], to: ['paused'], by: 'an operator, or the disk guard' },
  resume: { from: ['filling', 'paused', 'failed'], to: ['filling'], by: 'an operator, or the disk guard' },
  fill: { from: ['filling'], to: ['filled', 'failed'], by: 'the process that fills it' },
  verify: { from: ['filled'], to: ['filled'], by: 'an operator, or the program for its own rebuilds' },
  cancel: { from: ['filling', 'paused', 'failed', 'filled'], to: ['cancelled'], by: 'an operator, or the program' },
  swap: { from: ['filled'], to: ['swapping'], by: 'an operator, or the program for its own rebuilds' },
  'swap one key': { from: ['filling'], to: ['swapping'], by: 'the process that corrects the key' },
  'end the swap': {
    from: ['swapping'],
    to: ['swapped', 'filled', 'filling'],
    by: 'the process that swaps, or any later one'
  },
  'roll back': { from: ['swapped'], to: ['rolling-back'], by: 'an operator' },
  'end the rollback': { from: ['rolling-back'], to: ['rolled-back', 'swapped'], by: 'that process, or any later one' },
  drop: { from: ['swapped'], to: ['dropped'], by: 'an operator, a later swap, or the program' }
} as const satisfies Record<string, { from: RebuildState[]; to: RebuildState[]; by: string }>

type Change = keyof typeof CHANGES

const changes: readonly { readonly from: readonly RebuildState[]; readonly to: readonly RebuildState[] }[] =
  Object.values(CHANGES)

/** True if a rebuild in this state may change in this way. */
export function allows({ state }: Pick<RebuildStatus, 'state'>, change: Change): boolean {
  return (CHANGES[change].from as readonly RebuildState[]).includes(state)
}

/** Throws if no change leads from a state to another: a mistake of the program. */
export function requireChange(from: RebuildState, to: RebuildState): void {
  if (from === to || changes.some((each) => each.from.includes(from) && each.to.includes(to))) return
  throw new Error(`A rebuild that is ${from} cannot become ${to}.`)
}

/** Throws a {@link RebuildRefused} unless a rebuild may change in this way. */
export function requireAllowed(
  record: Pick<RebuildStatus, 'id' | 'projection' | 'state' | 'reason'>,
  change: Change,
  done: string
): void {
  if (allows(record, change)) return
  const reason = record.reason === null ? '' : ` (${record.reason})`
  throw new RebuildRefused(
    `Rebuild ${record.id} of ${record.projection} is ${record.state}${reason} and cannot be ${done}; only a rebuild ` +
      `that is ${CHANGES[change].from.join(' or ')} can.`
  )
}

const isEnd = (state: RebuildState) => !changes.some(({ from }) => from.includes(state))

/** True if a rebuild's tables may still be swapped in, or are being moved back. */
export const isUnderWay = ({ state }: Pick<RebuildStatus, 'state'>): boolean => state !== 'swapped' && !isEnd(state)
