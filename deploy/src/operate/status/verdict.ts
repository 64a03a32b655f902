import { durationText } from '@gamenet/schemas'
import { counted } from '../../terminal/terminal.js'
import type { Status } from './operation.js'

/**
 * Returns the first line of `gamenet status`: healthy, or each problem with the command or page that helps.
 * @param noService says that no process was asked; data alone are not healthy
 */
export function verdictOf(status: Status, noService?: string): string {
  const problems = [...ofService(status), ...ofData(status)]
  const verdict = problems.length === 0 ? 'Healthy.' : `Needs attention: ${problems.join('; ')}.`
  return noService === undefined ? verdict : problems.length === 0 ? noService : `${noService} ${verdict}`
}

function ofService({ notReady, degraded, disk, sources, spool }: Status): string[] {
  const failing = sources.filter(({ lastRun }) => lastRun?.outcome === 'failed')
  return [
    ...(notReady === null ? [] : [`not ready, ${notReady}`]),
    ...degraded,
    ...disk.disks
      .filter(({ isLow, isFull }) => isLow || isFull)
      .map((each) => `the disk of ${each.path} is ${stateOf(each)} (docs/operators/disk.md)`),
    ...failing.map(({ source }) => `the last scrape of ${source} failed (gamenet scrape ${source})`),
    ...(spool === null || spool.messages === 0
      ? []
      : [`the spool keeps ${counted(spool.messages, 'message')} for Kafka`])
  ]
}

function stateOf({ isFull, isReadOnly }: Status['disk']['disks'][number]): string {
  if (isReadOnly) return 'read-only'
  return isFull ? 'full' : 'low'
}

/**
 * Events of this age should be readable, and erasures complete, unless an import or a rebuild keeps the engines busy.
 */
const LAG_SECONDS_MAX = 300

function ofData({ stalled, damage, projections, rebuilds, deadLetters, trouble, erasures }: Status): string[] {
  const failing = projections.filter(({ state }) => state === 'failing')
  const topics = Object.keys(deadLetters)
  const oldest = Math.max(...projections.map(({ lagSeconds }) => lagSeconds ?? 0), 0)
  return [
    ...stalled.map(({ topic }) => `loading of ${topic} is stalled (gamenet gap list)`),
    ...(trouble === null || stalled.length > 0 ? [] : ['loading is stalled (the reason is below)']),
    ...(oldest > LAG_SECONDS_MAX
      ? [`an event is ${durationText(oldest)} old and not readable yet (BEHIND names the topic or the projection)`]
      : []),
    ...((erasures?.oldestSeconds ?? 0) > LAG_SECONDS_MAX ? ['an erasure is not complete (gamenet erase --list)'] : []),
    ...damageOf(damage.map(({ table }) => table)),
    ...failing.map(({ projection }) => `the projection ${projection} fails (the reason is below)`),
    ...rebuilds
      .filter(({ state }) => state === 'failed')
      .map(({ projection }) => `the rebuild of ${projection} failed (gamenet rebuild status ${projection})`),
    ...(topics.length === 0 ? [] : [`dead letters of ${topics.join(', ')} (gamenet dead-letters list)`])
  ]
}

/** A damaged disk may have many. */
const TABLES_NAMED = 3

function damageOf(tables: readonly string[]): string[] {
  if (tables.length === 0) return []
  const others = tables.length > TABLES_NAMED ? ` and ${tables.length - TABLES_NAMED} other tables` : ''
  return [`damage of ${tables.slice(0, TABLES_NAMED).join(', ')}${others} (the reason is below)`]
}
