import { withTimeout } from '@gamenet/schemas'

const MS_MAX = 300_000

/** Resolves with the result of `work`; rejects after five minutes, with `what` in the message. */
export async function inTime<Result>(what: string, work: Promise<Result>): Promise<Result> {
  return await withTimeout(work, MS_MAX, () => {
    throw new Error(`Not done within ${MS_MAX} ms: ${what}.`)
  })
}
