/** Returns the single range of bytes of a header `Range`; undefined for one that asks for something else, which is ignored. */
export function rangeOf(
  header: string | undefined,
  bytes: number
): { first: number; last: number } | 'unsatisfiable' | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/i.exec(header ?? '') ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? bytes - 1 : Math.min(bytes - 1, Number(to))
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
  return first > last || first >= bytes ? 'unsatisfiable' : { first, last }
}
