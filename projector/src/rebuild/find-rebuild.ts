import type { RebuildContext } from './context.js'
import { RebuildRefused } from './contract.js'
import { type RebuildRecord, readRebuilds } from './rebuild-record.js'
import { isUnderWay } from './states.js'
import { type RebuildRequest, requireKnown, unitFor } from './unit.js'

/**
 * Returns the rebuild of a projection that is under way: the one of all keys, if there is also one of a key. Throws a
 * {@link RebuildRefused} with the next step if there is none.
 */
export async function rebuildUnderWay({ store, projections }: RebuildContext, name: string): Promise<RebuildRecord> {
  requireKnown(projections, name)
  const records = await readRebuilds(store)
  const [record] = records
    .filter((each) => each.projection === name && isUnderWay(each))
    .sort((a, b) => Number(a.key !== null) - Number(b.key !== null))
  if (record !== undefined) return record
  const other = records.find((each) => isUnderWay(each) && each.unit.includes(name))
  const last = records.find((each) => each.projection === name)
  const hint = other === undefined ? afterwards(last, name) : `It is part of the one of ${other.projection}.`
  throw new RebuildRefused(`There is no rebuild of ${name} under way. ${hint}`)
}

/**
 * Returns the swapped rebuild of a projection, whose former tables are kept. Throws a {@link RebuildRefused} if there
 * is none.
 */
export async function rebuildSwapped({ store, projections }: RebuildContext, name: string): Promise<RebuildRecord> {
  requireKnown(projections, name)
  const records = (await readRebuilds(store)).filter((each) => each.projection === name || each.unit.includes(name))
  const swapped = records.filter(({ state }) => state === 'swapped')
  const record = swapped.find((each) => each.projection === name)
  if (record !== undefined) return record
  const [other] = swapped
  if (other !== undefined)
    throw new RebuildRefused(
      `The old tables of ${name} belong to rebuild ${other.id} of ${other.projection}; roll back or drop that one.`
    )
  const under = records.find((each) => each.projection !== name && isUnderWay(each))
  if (under !== undefined)
    throw new RebuildRefused(
      `There are no old tables of ${name} to roll back to or to drop. It is part of rebuild ${under.id} of ` +
        `${under.projection}, which is ${under.state}.`
    )
  const last = records.find((each) => each.projection === name)
  throw new RebuildRefused(`There are no old tables of ${name} to roll back to or to drop. ${afterwards(last, name)}`)
}

/**
 * Returns a sentence about a rebuild under way with some of these projections; undefined if there is none. A rebuild of
 * one key and one of all keys are independent.
 */
export async function concurrentRebuild(
  { store, projections }: RebuildContext,
  request: RebuildRequest
): Promise<string | undefined> {
  const names = new Set(unitFor(projections, request).map(({ name }) => name))
  const other = (await readRebuilds(store)).find(
    (each) =>
      isUnderWay(each) &&
      (each.key === null) === (request.key === undefined) &&
      each.unit.some((name) => names.has(name))
  )
  if (other === undefined) return undefined
  const { id, projection, state, until, key, retracts, isAutomatic } = other
  const shared = other.unit.filter((name) => names.has(name)).join(', ')
  const cancel = `gamenet rebuild cancel ${projection}`
  const resume = `gamenet rebuild resume ${projection}`
  const wayOn =
    state === 'filled'
      ? 'swap it in'
      : state === 'filling'
        ? 'wait until it is filled and swap it in'
        : `continue it by ${resume}`
  const way =
    retracts !== null
      ? `it ${purposeOf(other)}; gamenet import undo ${retracts} completes it.`
      : isAutomatic || (key !== null && state !== 'paused')
        ? `it ${purposeOf(other)}, and completes by itself.`
        : until !== null
          ? `it is for inspection only; ${cancel} drops it.`
          : `${wayOn}, or ${cancel}.`
  return `Rebuild ${id} of ${projection} is ${state} and has ${shared}: ${way}`
}

/** Says what a rebuild that completes by itself is for. */
export function purposeOf({ key, retracts }: Pick<RebuildRecord, 'key' | 'retracts'>): string {
  if (key !== null) return `corrects ${key}`
  return retracts === null ? 'replaces tables of an earlier version of the program' : `undoes import ${retracts}`
}

/** Throws a {@link RebuildRefused} while an import of these projections is undone: the former tables contain it. */
export async function requireNoImportUndo({ store }: RebuildContext, { unit }: RebuildRecord): Promise<void> {
  const undoing = (await readRebuilds(store)).find(
    (each) => each.retracts !== null && isUnderWay(each) && each.unit.some((name) => unit.includes(name))
  )
  if (undoing === undefined) return
  throw new RebuildRefused(
    `Rebuild ${undoing.id} of ${undoing.projection} undoes import ${undoing.retracts}, which the former tables ` +
      `contain; gamenet import undo ${undoing.retracts} completes it.`
  )
}

/** Returns the outcome of the last rebuild of a projection, and the next step. */
function afterwards(last: RebuildRecord | undefined, name: string): string {
  const startHint = `gamenet rebuild start ${name} makes new ones.`
  if (last === undefined) return `It was never rebuilt: gamenet rebuild start ${name} begins it.`
  const its = `Its last rebuild, ${last.id},`
  const why = last.reason === null ? '' : ` (${last.reason})`
  switch (last.state) {
    case 'rolled-back':
      return `${its} was rolled back: the former tables serve again, and its own are dropped. ${startHint}`
    case 'cancelled':
      return `${its} was cancelled${why}, and its tables are dropped. ${startHint}`
    case 'dropped':
      return `${its} was swapped in, and the former tables are dropped${why}. ${startHint}`
    case 'swapped':
      return (
        `${its} serves already: gamenet rebuild rollback ${name} undoes it, gamenet rebuild drop ${name} drops the ` +
        'former tables.'
      )
    default:
      return `${its} is ${last.state}${why}: gamenet rebuild status ${name} shows its progress.`
  }
}
