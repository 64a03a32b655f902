import { type ClickHouse, LANE_NAMES, type Lane, type LaneName } from './clickhouse.js'
import type { Connection } from './lane.js'
import type { Slots } from './slots.js'

export type LaneSlots = Slots<Connection>

/** Combines lanes and their statistics. `close` is called once, after the lanes refuse new work. */
export const engineOf = (parts: {
  readonly slots: Readonly<Record<LaneName, LaneSlots>>
  lane(name: LaneName): Lane
  close(): Promise<void>
}): ClickHouse => {
  const { slots } = parts
  const control = parts.lane('control')
  const exports = parts.lane('exports')
  let closing: Promise<void> | undefined
  return {
    loader: parts.lane('loader'),
    projections: parts.lane('projections'),
    rebuild: parts.lane('rebuild'),
    readers: { ...parts.lane('readers'), stream: exports.stream },
    exports,
    control,
    version: async () => String((await control.rows('SELECT version() AS version'))[0]?.version),
    stats: () => ({
      lanes: {
        loader: slots.loader.stats(),
        projections: slots.projections.stats(),
        rebuild: slots.rebuild.stats(),
        readers: slots.readers.stats(),
        exports: slots.exports.stats(),
        control: slots.control.stats()
      }
    }),
    close: () => {
      for (const name of LANE_NAMES) if (name !== 'control') slots[name].close()
      closing ??= parts.close()
      return closing
    }
  }
}
