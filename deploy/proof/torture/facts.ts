import { appendFileSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/*
 * Facts that the harness knows, in a file that survives each run: pages shown, requests sent, acknowledgements.
 */

const Fact = z.discriminatedUnion('fact', [
  /** The seed of the upstream pages; the first one of a directory applies to all its runs. */
  z.object({ fact: z.literal('begun'), seed: z.int(), engines: z.string() }),
  /** `second`: seconds since 1970 from which the step was shown. */
  z.object({ fact: z.literal('shown'), step: z.int(), second: z.int() }),
  z.object({
    fact: z.enum(['sent', 'acknowledged']),
    what: z.enum(['rating', 'profile']),
    of: z.string(),
    text: z.string()
  }),
  z.object({ fact: z.literal('imported'), file: z.int() }),
  z.object({ fact: z.literal('scraped'), fromMs: z.number(), toMs: z.number() }),
  z.object({ fact: z.literal('struck'), kind: z.enum(['kill', 'pause', 'stop']), who: z.string(), when: z.string() }),
  z.object({ fact: z.literal('rebuilt'), what: z.enum(['start', 'verify', 'swap', 'rollback']) }),
  z.object({ fact: z.literal('read'), answers: z.int(), refusals: z.int() }),
  z.object({ fact: z.literal('ran'), seconds: z.number(), differences: z.int() })
])
type Fact = z.infer<typeof Fact>

export type Facts = {
  /** The seed of the first run of this directory. */
  readonly seed: number
  lastStep(): number
  /** Returns the second from which a step was shown, until the next one; undefined if it was not shown. */
  shownFrom(step: number): number | undefined
  /** Possible final values, by kind and user: the last acknowledged one, and those sent after it. */
  readonly possible: ReadonlyMap<string, readonly string[]>
  /** The kinds and users with an acknowledged write. */
  readonly acknowledged: ReadonlySet<string>
  readonly imported: ReadonlySet<number>
  /** Start and end of each successful run of the home page. */
  readonly scraped: readonly { readonly fromMs: number; readonly toMs: number }[]
  readonly counts: {
    kills: number
    pauses: number
    stops: number
    ratings: number
    edits: number
    imports: number
    scrapes: number
    /** Answers to readers, and 503 answers among them. */
    answers: number
    refusals: number
    /** Number of rebuilds that were started. */
    rebuilds: number
    swaps: number
    runs: number
    seconds: number
    differences: number
  }
  readonly struckBy: ReadonlyMap<string, number>
  add(fact: Fact): void
  /** Copies the file of all facts to another directory. */
  copyTo(directory: string): void
}

/** Opens the facts of a directory, including those of earlier runs. */
export function openFacts(directory: string, seed: number, engines: string): Facts {
  mkdirSync(directory, { recursive: true })
  const file = join(directory, 'facts.ndjson')
  const kept = readFacts(file)
  const begun = kept.find((fact) => fact.fact === 'begun')
  if (begun !== undefined && begun.engines !== engines) {
    throw new Error(
      `${directory} holds a run on ${begun.engines} engines, but this one is on ${engines}; use another --directory.`
    )
  }
  const possible = new Map<string, string[]>()
  const acknowledged = new Set<string>()
  const imported = new Set<number>()
  const scraped: { fromMs: number; toMs: number }[] = []
  const struckBy = new Map<string, number>()
  const counts = {
    kills: 0,
    pauses: 0,
    stops: 0,
    ratings: 0,
    edits: 0,
    imports: 0,
    scrapes: 0,
    answers: 0,
    refusals: 0,
    rebuilds: 0,
    swaps: 0,
    runs: 0,
    seconds: 0,
    differences: 0
  }
  /** The first step is recorded before any request. */
  const shownFrom = [0]
  const apply = (fact: Fact): void => {
    if (fact.fact === 'shown') shownFrom[fact.step] = fact.second
    else if (fact.fact === 'sent' || fact.fact === 'acknowledged') {
      const key = `${fact.what} ${fact.of}`
      const isKept = fact.fact === 'acknowledged'
      possible.set(key, isKept ? [fact.text] : [...(possible.get(key) ?? []), fact.text])
      if (isKept) acknowledged.add(key)
      if (isKept) counts[fact.what === 'rating' ? 'ratings' : 'edits'] += 1
    } else if (fact.fact === 'imported') {
      imported.add(fact.file)
      counts.imports = imported.size
    } else if (fact.fact === 'scraped') {
      scraped.push(fact)
      counts.scrapes += 1
    } else if (fact.fact === 'struck') {
      counts[`${fact.kind}s`] += 1
      const what = `${fact.kind} ${fact.who} ${fact.when}`
      struckBy.set(what, (struckBy.get(what) ?? 0) + 1)
    } else if (fact.fact === 'rebuilt') {
      if (fact.what === 'start') counts.rebuilds += 1
      if (fact.what === 'swap' || fact.what === 'rollback') counts.swaps += 1
    } else if (fact.fact === 'read') {
      counts.answers += fact.answers
      counts.refusals += fact.refusals
    } else if (fact.fact === 'ran') {
      counts.runs += 1
      counts.seconds += fact.seconds
      counts.differences += fact.differences
    }
  }
  for (const fact of kept) apply(fact)
  const add = (fact: Fact): void => {
    appendFileSync(file, `${JSON.stringify(fact)}\n`)
    apply(fact)
  }
  if (begun === undefined) add({ fact: 'begun', seed, engines })
  return {
    seed: begun?.seed ?? seed,
    lastStep: () => shownFrom.length - 1,
    shownFrom: (step) => shownFrom[step],
    possible,
    acknowledged,
    imported,
    scraped,
    counts,
    struckBy,
    add,
    copyTo(other) {
      mkdirSync(other, { recursive: true })
      copyFileSync(file, join(other, 'facts.ndjson'))
    }
  }
}

function readFacts(file: string): Fact[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return []
  }
  // The last line of a killed run may be torn.
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line !== '').map((line) => Fact.parse(JSON.parse(line)))
}
