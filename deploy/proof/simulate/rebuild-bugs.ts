import type { Tables } from '@gamenet/projector'
import type { Row } from './replacing-table.js'

/*
 * Mistakes in rebuilds, planted in the statements of their process.
 */

const isLiveCheckpoints = (sql: string) => /FROM checkpoint AS c GROUP BY/.test(sql)

/** What is stored of a rebuild: its id and its state; undefined for other inserts. */
function storedState(table: string, body: Uint8Array): { readonly id: number; readonly state: string } | undefined {
  return table === 'rebuild' ? JSON.parse(JSON.parse(Buffer.from(body).toString())[1]) : undefined
}

/** Where the live tables have come to is what it was when the fill ended. */
export function notCaughtUp(tables: Tables): Tables {
  let filledAt: Promise<Row[]> | undefined
  return {
    ...tables,
    rows: async (sql, parameters) => {
      if (isLiveCheckpoints(sql) && filledAt !== undefined) return [...(await filledAt)]
      return await tables.rows(sql, parameters)
    },
    insert: async (table, columns, body) => {
      await tables.insert(table, columns, body)
      const stored = storedState(table, body)
      if (stored === undefined) return
      const live =
        'SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next FROM checkpoint AS c GROUP BY c.name, c.epoch, c.partition'
      filledAt = stored.state === 'filled' ? (filledAt ?? tables.rows(live)) : undefined
    }
  }
}

/** Assumes that the live tables have consumed all loaded events. */
export function aheadOfLive(tables: Tables, topicOf: ReadonlyMap<string, string>): Tables {
  return {
    ...tables,
    rows: async (sql, parameters) => {
      const rows = await tables.rows(sql, parameters)
      if (!isLiveCheckpoints(sql)) return rows
      const placeOf = ({ epoch, partition }: Row) => `${epoch}/${partition}`
      return rows.map((row) => {
        const load = `load:${topicOf.get(String(row.name))}`
        const loaded = rows.find((each) => each.name === load && placeOf(each) === placeOf(row))
        return loaded === undefined ? row : { ...row, next: loaded.next }
      })
    }
  }
}

/** Nothing is deleted from a table that was loaded from the log. */
export function keepingUndone(tables: Tables): Tables {
  return {
    ...tables,
    execute: async (sql, parameters) => {
      if (!/^DELETE FROM \w+__\d/.test(sql)) await tables.execute(sql, parameters)
    }
  }
}

/** Assumes that the old tables have the checkpoints of the serving ones. */
export function unchangedCheckpoint(tables: Tables): Tables {
  const states = new Map<string, string>()
  return {
    ...tables,
    rows: async (sql, parameters) => {
      const [, id = ''] = /FROM checkpoint__(\d+)/.exec(sql) ?? []
      const isPutAway = ['swapped', 'rolling-back'].includes(states.get(id) ?? '')
      const rows = await tables.rows(isPutAway ? sql.replace(`checkpoint__${id}`, 'checkpoint') : sql, parameters)
      for (const { newest } of rows) {
        if (typeof newest !== 'string') continue
        const record = JSON.parse(newest)
        states.set(String(record.id), record.state)
      }
      return rows
    }
  }
}
