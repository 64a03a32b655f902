import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouse } from '@gamenet/engines'
import { encodeEvent, instantOf, titleCountTopic } from '@gamenet/schemas'
import { type LogChoice, openLog } from '../../src/stores/log.js'
import { Chance } from '../simulate/chance.js'

/*
 * A log filled with counts, and the speed of loading a table from it.
 */

const TITLES = 200
const APPEND_MINUTES = 50
const POLL_MS = 20
const LOADED_WITHIN_MS = 120_000

/** Appends per-minute counts of 200 titles in batches of the size of an import; returns the number of events. */
export async function fillWithCounts(choice: LogChoice, atLeast: number): Promise<number> {
  const log = await openLog(choice, 'bench')
  const chance = new Chance(7)
  const titleIds = Array.from({ length: TITLES }, (_, i) => (0x4d53_0000 + i * 37).toString(16))
  let events = 0
  for (let minute = 0; events < atLeast; minute += APPEND_MINUTES) {
    const messages = Array.from({ length: APPEND_MINUTES }, (_, i) => {
      const observedAt = instantOf(Date.UTC(2026, 0, 1) + (minute + i) * 60_000)
      return titleIds.map((titleId) => {
        const online = chance.below(4000)
        const event = { titleId, observedAt, online, sessions: online >> 3, lobbyPlayers: online >> 1 }
        return encodeEvent(titleCountTopic, event, { source: '/import/bench', importId: 'bench' })
      })
    }).flat()
    await log.append(titleCountTopic.name, messages)
    events += messages.length
  }
  await log.close()
  return events
}

/** Returns rows a second from the first observed insert to the last. */
export async function rateInto(tables: ClickHouse, table: string, events: number): Promise<number> {
  const begun = performance.now()
  let first: { at: number; rows: number } | undefined
  for (;;) {
    const [row] = await tables.control.rows(`SELECT count() AS rows FROM ${table}`)
    const rows = Number(row?.rows)
    const at = performance.now()
    if (rows > 0) first ??= { at, rows }
    if (first !== undefined && rows >= events) {
      if (rows > events) throw new Error(`${table} has ${rows} rows of ${events} events`)
      return ((rows - first.rows) / (at - first.at)) * 1000
    }
    if (at - begun > LOADED_WITHIN_MS) {
      throw new Error(`${table} has ${rows} of ${events} rows after ${LOADED_WITHIN_MS} ms`)
    }
    await pause(POLL_MS)
  }
}
