import { Refusal } from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { Card } from './marks.js'
import { count, withQuery } from './text.js'

/**
 * A column of a table: its heading, what it shows of a row, and the name by which the table is sorted. A heading that
 * begins with `#` is one of numbers; the first other column names the row.
 */
export type Column<Row> = readonly [
  head: string,
  cell: (row: Row, index: number) => ComponentChildren,
  sort?: string | undefined
]

/** How a table is sorted, and the address at which it is sorted by a column. */
type Order = { readonly by: string; readonly isAscending: boolean; hrefOf(sort: string): string }

type TableProps<Row> = {
  label: string
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  order?: Order
  /** Further attributes of a row. */
  attributesOf?: (row: Row, index: number) => Readonly<Record<string, string | undefined>>
}

const classOf = (head: string) => (head.startsWith('#') ? 'number' : undefined)

/** A table that scrolls sideways on small screens. */
export function Table<Row>({ label, rows, columns, order, attributesOf }: TableProps<Row>) {
  const naming = columns.findIndex(([head]) => !head.startsWith('#'))
  return (
    <section class="scroll" tabindex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(([head, , sort], index) => (
              <Heading key={index} {...{ head, order, sort }} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place} {...attributesOf?.(row, place)}>
              {columns.map(([head, cell], index) =>
                index === naming ? (
                  <th key={index} scope="row">
                    {cell(row, place)}
                  </th>
                ) : (
                  <td key={index} class={classOf(head)}>
                    {cell(row, place)}
                  </td>
                )
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** A heading, which leads to the table sorted by its column. */
function Heading({ head, order, sort }: { head: string; order: Order | undefined; sort: string | undefined }) {
  const text = head.replace(/^#/, '')
  const by = order !== undefined && sort === order.by ? (order.isAscending ? 'ascending' : 'descending') : undefined
  return (
    <th scope="col" class={classOf(head)} aria-sort={by}>
      {order === undefined || sort === undefined ? (
        text
      ) : (
        <a href={order.hrefOf(sort)} rel="nofollow">
          {text}
          {by === undefined ? '' : by === 'ascending' ? ' ▲' : ' ▼'}
        </a>
      )}
    </th>
  )
}

type CardOf<Row> = { title: string; more?: ComponentChildren; id?: string; rows: readonly Row[]; empty?: string }

type TableCardProps<Row> = CardOf<Row> &
  Omit<TableProps<Row>, 'label'> & {
    /** Further rows are left out. */
    most?: number
    children?: ComponentChildren
  }

/** A section with a table, or a sentence where there is no row. */
export function TableCard<Row>({
  title,
  more,
  id,
  empty = 'No data yet.',
  most = Number.POSITIVE_INFINITY,
  children,
  rows,
  ...table
}: TableCardProps<Row>) {
  return (
    <Card title={title} more={more} id={id}>
      {rows.length === 0 ? <p class="quiet">{empty}</p> : <Table label={title} rows={rows.slice(0, most)} {...table} />}
      {rows.length > most ? (
        <p class="quiet">
          The first {most} of {count(rows.length)}.
        </p>
      ) : null}
      {children}
    </Card>
  )
}

/** Lines of a list that folds, before it is unfolded. */
const UNFOLDED = 3

type FeedProps<Row> = {
  rows: readonly Row[]
  row: (row: Row) => ComponentChildren
  empty?: string
  /** On phones, all but the first lines unfold. */
  folds?: boolean
}

/** A list of what happened, or a sentence where there is nothing. */
export function Feed<Row>({ rows, row, empty = 'None yet.', folds = false }: FeedProps<Row>) {
  if (rows.length === 0) return <p class="quiet">{empty}</p>
  const listOf = (some: readonly Row[]) => (
    <ul class="plain feed">
      {some.map((each, index) => (
        <li key={index}>{row(each)}</li>
      ))}
    </ul>
  )
  if (!folds || rows.length <= UNFOLDED) return listOf(rows)
  return (
    <>
      {listOf(rows.slice(0, UNFOLDED))}
      <details class="folded">
        <summary>{count(rows.length - UNFOLDED)} more</summary>
        {listOf(rows.slice(UNFOLDED))}
      </details>
    </>
  )
}

/** A section with a list. */
export function FeedCard<Row>({ title, more, ...feed }: CardOf<Row> & FeedProps<Row>) {
  return (
    <Card title={title} more={more}>
      <Feed {...feed} />
    </Card>
  )
}

type PagerProps = { page: number; pages: number; path: string; query: Readonly<Record<string, string | undefined>> }

/** Links to the pages before and after. */
export function Pager({ page, pages, path, query }: PagerProps) {
  if (pages <= 1) return null
  const hrefOf = (to: number) => withQuery(path, { ...query, page: to === 1 ? undefined : to })
  return (
    <nav class="pager" aria-label="Pages">
      {page > 1 ? (
        <a href={hrefOf(page - 1)} rel="prev nofollow">
          ‹ Previous
        </a>
      ) : null}
      <span>
        Page {count(page)} of {count(pages)}
      </span>
      {page < pages ? (
        <a href={hrefOf(page + 1)} rel="next nofollow">
          Next ›
        </a>
      ) : null}
    </nav>
  )
}

/** Returns the number of a page of a list, and how many there are. Refuses one beyond the end. */
export function pageOf(page: number, total: number, perPage: number): { page: number; pages: number } {
  const pages = Math.max(1, Math.ceil(total / perPage))
  if (page > pages) throw new Refusal('page_beyond_end', [String(page), String(pages)])
  return { page, pages }
}
