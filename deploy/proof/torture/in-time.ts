import { withTimeout } from '@gamenet/schemas'

const MS_MAX = 300_000

/** Resolves with the result of `work`; after five minutes rejects with the name of the awaited thing. */
export async function inTime<Result>(what: string, work: Promise<Result>): Promise<Result> {
  return await withTimeout(work, MS_MAX, () => {
    throw new Error(`Waited ${MS_MAX} ms in vain: ${what}.`)
  })
}
