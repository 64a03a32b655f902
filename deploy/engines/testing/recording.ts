/** A request, and the status of its answer. */
export type Recorded = {
  readonly url: string
  readonly method: string
  readonly tag: string | null
  readonly status: number
}

/** A fetch that records the requests and the status of the answers. */
export function recording(send: typeof fetch = fetch): { fetch: typeof fetch; requests: Recorded[] } {
  const requests: Recorded[] = []
  return {
    requests,
    fetch: async (input, init) => {
      const response = await send(input, init)
      requests.push({
        url: String(input),
        method: init?.method ?? 'GET',
        tag: new Headers(init?.headers).get('if-none-match'),
        status: response.status
      })
      return response
    }
  }
}
