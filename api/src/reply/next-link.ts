/** Returns a `Link` header to the next page, relative to the service. Parameters that are null are omitted. */
export function nextLink(
  path: string,
  parameters: Readonly<Record<string, string | number | null>>
): { readonly Link: string } {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== null) query.set(name, String(value))
  return { Link: `<${path}?${query}>; rel="next"` }
}
