import { Checkpoints } from '../store/checkpoint.js'
import { type RebuildContext, unitOf, waitingNames, waitingTables } from './context.js'
import type { RebuildStatus } from './contract.js'
import { doneByProjection } from './fill.js'
import type { Fillers } from './fillers.js'
import type { RebuildRecord } from './rebuild-record.js'

/** Returns the status of a rebuild for operators. */
export async function statusOf(
  context: RebuildContext,
  fillers: Fillers,
  record: RebuildRecord
): Promise<RebuildStatus> {
  const { id, projection, unit, state, reason, until, isByRecording, isFromLog, rate, key } = record
  const { retracts, isAutomatic } = record
  return {
    ...{ id, projection, unit, state, reason, until, isByRecording, isFromLog, rate, key, retracts, isAutomatic },
    startedAt: record.startedAt,
    changedAt: record.changedAt,
    tables: waitingTables(record),
    verification: record.verification,
    progress: await progressOf(context, fillers, record)
  }
}

/** Returns the progress of a fill; complete after the fill. */
export async function progressOf(
  context: RebuildContext,
  fillers: Fillers,
  record: RebuildRecord
): Promise<RebuildStatus['progress']> {
  const total = Object.values(record.events).reduce((sum, events) => sum + events, 0)
  const isFilling = ['filling', 'paused', 'failed'].includes(record.state)
  if (!isFilling) return { projection: '', done: total, total, share: 1, eventsPerSecond: null, etaSeconds: null }
  const checkpoints = await Checkpoints.read(context.store.with({ names: waitingNames(record) }))
  const done = doneByProjection(record, unitOf(context, record), checkpoints)
  const left = new Map(
    Object.keys(record.events).map((name) => [name, Math.max(0, (record.events[name] ?? 0) - (done.get(name) ?? 0))])
  )
  const estimate = fillers.estimateOf(record)
  const events = [...done.values()].reduce((sum, each) => sum + each, 0)
  const rate = record.rate ?? Infinity
  return {
    projection: [...left].find(([, events]) => events > 0)?.[0] ?? '',
    done: events,
    total,
    share: record.key === null ? estimate.shareOf(done, left, rate) : 0,
    eventsPerSecond: estimate.eventsPerSecond && Math.min(rate, estimate.eventsPerSecond),
    etaSeconds: record.key === null ? estimate.remaining(left, performance.now(), rate) : null
  }
}
