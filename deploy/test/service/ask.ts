import type { Test } from 'tap'

export type Answered = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: unknown
}

/** Sends one GET; returns its body as text and as parsed JSON. */
export async function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
  const response = await fetch(url, { headers })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}

/** Compares long lists and shows only the first difference: a diff of 80,000 points is useless. */
export function sameList(t: Test, found: readonly unknown[], wanted: readonly unknown[], message: string): void {
  const length = Math.max(found.length, wanted.length)
  for (let at = 0; at < length; at += 1) {
    if (JSON.stringify(found[at]) === JSON.stringify(wanted[at])) continue
    t.same(found[at], wanted[at], `${message} (at ${at} of ${wanted.length})`)
    return
  }
  t.equal(found.length, wanted.length, message)
}

/** Runs `work` on every item, `width` of them at a time. */
export async function forEach<Item>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<void>
): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of rest) await work(item)
    })
  )
}
