import { Refusal } from '@gamenet/schemas'

/** Returns the number of a page of a list, and how many there are. Refuses one beyond the end. */
export function pageOf(page: number, total: number, perPage: number): { page: number; pages: number } {
  const pages = Math.max(1, Math.ceil(total / perPage))
  if (page > pages) throw new Refusal('page_beyond_end', [String(page), String(pages)])
  return { page, pages }
}
