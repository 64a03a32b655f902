import { withTimeout } from '@gamenet/schemas'

const MS_MAX = 300_000

/** What `work` gives; rejects, with what was waited for, when that takes longer than five minutes. */
export async function inTime<Result>(what: string, work: Promise<Result>): Promise<Result> {
  return await withTimeout(work, MS_MAX, () => {
    throw new Error(`Waited ${MS_MAX} ms for this in vain: ${what}.`)
  })
}
