import { storeAt } from '@gamenet/projector'
import { Checkpoints, type RebuildOperations } from '@gamenet/projector/internals'
import {
  encodeEvent,
  importRunTopic,
  instantOf,
  loadCheckpoint,
  projectionCheckpoint,
  type TitleCounted,
  titleCountTopic
} from '@gamenet/schemas'
import { finishUndos, type ImportUndoNeeds, undoImport } from '../../src/operate/import/run-import-undo.js'
import type { Import, Place } from './place.js'
import { simulatedProjections, simulatedTopics, TITLE_IDS } from './simulated.js'
import { storeIn } from './store.js'
import { LATER_TYPE } from './tables/newer-program.js'

type Rebuilding = { readonly rebuilds: RebuildOperations }

const EVENTS = 6
const LATER_SHARE = 0.3
const HOUR_MS = 3_600_000
/** Maximum delay of a message of an importer. */
const ON_ITS_WAY_MS = 12_000
const LOOK_MS = 300
const PATIENCE_MS = 60_000

/** Publishes a file of counts, with the events of its import before and after it. */
export async function publishImport(place: Place): Promise<void> {
  const { world, log, imports, acknowledged, bug } = place
  const { chance, time } = world
  const importId = String(imports.size + 1).padStart(32, '0')
  const own: Import = { by: time.current, endedMs: undefined, isUndone: false }
  imports.set(importId, own)
  const publishing = bug.publishedLog({ append: (topic, messages) => log.append(topic, messages) })
  const isLater = chance.happens(LATER_SHARE)
  const atMs = Math.floor(Date.now() / 1000) * 1000
  const events: TitleCounted[] = Array.from({ length: EVENTS }, () => ({
    titleId: chance.oneOf(TITLE_IDS),
    observedAt: instantOf(atMs - chance.below(6) * (HOUR_MS / 4)),
    online: chance.below(50)
  }))
  const messages = events.map((event) => {
    const message = encodeEvent(titleCountTopic, event, { source: '/import/file', importId })
    return isLater ? { ...message, headers: { ...message.headers, ce_type: LATER_TYPE } } : message
  })
  const announce = async (finished: boolean) => {
    const rows = finished ? EVENTS : 0
    const run = { importId, topic: titleCountTopic.name, file: 'counts.csv', rowsRead: rows, published: rows }
    const event = { ...run, rejected: 0, finished, observedAt: instantOf(Date.now()) }
    await publishing.append(importRunTopic.name, [encodeEvent(importRunTopic, event, { source: '/import' })])
  }
  const publishOnce = async () => {
    await announce(false)
    await publishing.append(titleCountTopic.name, messages)
    for (const event of events) acknowledged.add(JSON.stringify(event))
    await announce(true)
  }
  try {
    // An importer without an acknowledgement publishes the same events again.
    await publishOnce().catch(publishOnce)
  } finally {
    own.endedMs = time.nowMs
  }
}

/** Returns the id of an import that can be undone: it is listed, has ended, and all its messages have arrived. */
export function undoable({ world, imports, tables }: Place): string | undefined {
  const { nowMs } = world.time
  const ended: string[] = []
  for (const [importId, each] of imports) {
    if (each.by.isOver) each.endedMs ??= nowMs
    const isListed = tables.written(tables.pointers.serving.nameOf('import_run')).get(importId) !== undefined
    if (isListed && each.endedMs !== undefined && nowMs - each.endedMs > ON_ITS_WAY_MS) ended.push(importId)
  }
  const [first, ...others] = ended
  return first === undefined ? undefined : world.chance.oneOf([first, ...others])
}

/** Undoes an import, as `gamenet import undo` does. */
export async function undo(place: Place, projector: Rebuilding, importId: string): Promise<void> {
  const known = place.imports.get(importId)
  if (known !== undefined) known.isUndone = true
  await undoImport(undoNeedsIn(place, projector), importId, () => undefined)
}

/** Completes interrupted import undos, as a process does at its start. */
export async function finishInterruptedUndos(place: Place, projector: Rebuilding): Promise<void> {
  await finishUndos(undoNeedsIn(place, projector))
}

function undoNeedsIn(place: Place, { rebuilds }: Rebuilding): ImportUndoNeeds {
  const { world, tables, log } = place
  const engines: ImportUndoNeeds['engines'] = { store: storeIn(world, tables), log: { append: log.append.bind(log) } }
  const caughtUp = (topics: readonly string[] = simulatedTopics.map(({ name }) => name)) => untilConsumed(place, topics)
  return { engines, projector: rebuilds, importing: new Set(), caughtUp }
}

/** Resolves when all projections have consumed the current events of these topics. */
export async function untilConsumed({ world, tables, log }: Place, topics: readonly string[]): Promise<void> {
  const { time } = world
  const life = time.current
  const store = storeIn(world, tables)
  const heads = []
  for (const topic of topics) heads.push({ topic, extents: await log.extents(topic) })
  for (const endMs = time.nowMs + PATIENCE_MS; time.nowMs < endMs; ) {
    const checkpoints = await Checkpoints.read(await storeAt('reads', store, simulatedProjections))
    const isConsumed = heads.every(({ topic, extents }) => {
      const consumers = simulatedProjections.filter(({ from }) => from.name === topic)
      const names = [loadCheckpoint(topic), ...consumers.map(({ name }) => projectionCheckpoint(name))]
      return extents.every(({ epoch, partition, next }) =>
        names.every((name) => checkpoints.next(name, epoch, partition) >= next)
      )
    })
    if (isConsumed) return
    await time.pause(life, LOOK_MS)
  }
  throw new Error('The log was not consumed to its end in time.')
}
