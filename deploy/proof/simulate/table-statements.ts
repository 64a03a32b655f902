import type { TableSet } from './table-set.js'

type Change = (store: TableSet, found: readonly string[], share: number) => void

const NAME = '([a-z]\\w*)'

/** Statements about tables themselves: what they look like, and what they do. `share` of a torn one is done. */
const changes: readonly (readonly [RegExp, Change])[] = [
  [new RegExp(`^DROP (?:TABLE|VIEW) IF EXISTS ${NAME}$`), (store, [name = '']) => store.drop(name)],
  [
    new RegExp(`^CREATE TABLE IF NOT EXISTS ${NAME} AS ${NAME}$`),
    (store, [name = '', as = '']) => {
      if (!store.has(name)) store.create(name, as)
    }
  ],
  [
    new RegExp(`^CREATE TABLE ${NAME} AS ${NAME}$`),
    (store, [name = '', as = '']) => {
      if (store.has(name)) throw new Error(`Table ${name} already exists.`)
      store.create(name, as)
    }
  ],
  [
    new RegExp(`^CREATE VIEW ${NAME} AS SELECT .* FROM ${NAME} AS e .*toInt64\\((\\d+)\\)`),
    (store, [name = '', of = '', ms]) => store.createView(name, of, Number(ms))
  ],
  [
    new RegExp(`^DELETE FROM ${NAME} WHERE import_id IN \\((.*)\\)$`),
    (store, [name = '', ids = '']) => store.written(name).delete((row) => ids.includes(`'${row.import_id}'`))
  ],
  [new RegExp(`^TRUNCATE TABLE ${NAME}$`), (store, [name = '']) => store.written(name).truncate()],
  [
    new RegExp(`^ALTER TABLE ${NAME} ATTACH PARTITION ID '\\w+' FROM ${NAME}$`),
    (store, [name = '', from = '']) => store.written(name).insert(store.table(from).rows)
  ],
  [
    new RegExp(`^INSERT INTO ${NAME} \\(id, taker\\) SELECT t\\.id, t\\.taker FROM ${NAME} AS t$`),
    (store, [name = '', from = '']) => store.written(name).insert(store.table(from).rows)
  ],
  [
    /^EXCHANGE TABLES (.*)$/,
    (store, [pairs = ''], share) => {
      // One pair after the other, so that a part of them may have been done when it is cut off.
      const all = pairs.split(', ').map((pair) => pair.split(' AND '))
      for (const name of all.flat()) store.written(name)
      for (const [a = '', b = ''] of all.slice(0, Math.floor(all.length * share))) store.swap(a, b)
    }
  ]
]

/** Does what a statement about tables says; false when it is none. */
export function changeTables(store: TableSet, text: string, share: number): boolean {
  for (const [form, change] of changes) {
    const found = form.exec(text)
    if (found === null) continue
    const isWhole = share === 1 || text.startsWith('EXCHANGE')
    if (isWhole) change(store, found.slice(1), share)
    return true
  }
  return false
}
