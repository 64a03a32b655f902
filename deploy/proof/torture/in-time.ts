const MS_MAX = 300_000

/** What `work` gives; rejects, with what was waited for, when that takes longer than five minutes. */
export async function inTime<Result>(what: string, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${MS_MAX} ms for this in vain: ${what}.`)), MS_MAX)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
