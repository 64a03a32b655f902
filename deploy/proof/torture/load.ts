import { EventEmitter, once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { millisecondsOf, withTimeout } from '@gamenet/schemas'
import type { DemoAuth } from '../../demo/auth/server.js'
import { importFile } from '../../src/operate/import/operation.js'
import { scrape } from '../../src/operate/scrape/operation.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { Caller, type SignedIn, signIn } from '../../test/service/people-service.js'
import type { Facts } from './facts.js'
import { readersOf } from './readers.js'
import { rebuilder } from './rebuilder.js'
import { importedFile } from './world.js'

/*
 * Users who rate and edit, readers, imports, scrapes and rebuilds; each request is retried when a process dies.
 * Acknowledged writes are recorded as facts.
 */

export type Load = {
  /** Resolves after `count` further acknowledgements. */
  acknowledged(count: number): Promise<void>
  /** Resolves when `import`, `scrape`, `rebuild` or a user's next write begins. */
  begun(who: string): Promise<void>
  /** Resolves when all requested projections have served from rebuilt tables; rejects if none is rebuilt for five minutes. */
  rebuilt(): Promise<void>
  /** Wrong answers, as one sentence each. */
  readonly wrong: readonly string[]
  /** Ends after one more acknowledgement of each actor; rejects if one is missing after five minutes. */
  drain(): Promise<void>
  /** Ends at once. */
  stop(): Promise<void>
}

type LoadNeeds = {
  readonly facts: Facts
  readonly auth: DemoAuth
  /** Addresses of all API processes; the first one gets all writes. */
  readonly apiUrls: readonly [string, ...string[]]
  /** Address of a process that imports and scrapes. */
  readonly operatorUrl: string
  /** Addresses of all projectors. */
  readonly projectorUrls: readonly string[]
  /** Projections to be rebuilt before any other. */
  readonly rebuilt: readonly string[]
  /** Factor of the pauses of users and readers relative to full load. */
  readonly calm?: number
}

const USERS = 6
const USER_REST_MS = 40
const OPERATOR_REST_MS = 300
const READER_REST_MS = 20
const AGAIN_MS = 50
const DRAIN_MS = 300_000
const WRONG_MAX = 20
const REFUSAL_CHARACTERS = 300

export async function startLoad(needs: LoadNeeds): Promise<Load> {
  const { calm = 1 } = needs
  const users = await Promise.all(needs.auth.people.slice(0, USERS).map((person) => signIn(needs.auth, person)))
  const caller = new Caller({ apiUrl: needs.apiUrls[0] }, USERS)
  const report = new LoadReport()
  let isDraining = false
  let isOver = false
  /** The actors that have not ended, and the outcome of their last attempt. */
  const unfinished = new Map<string, string>()
  /** Repeats `work` until the load drains, and once more. Refused and interrupted work is retried. */
  const loop = async (who: string, restMs: number, work: (round: number) => Promise<boolean>): Promise<void> => {
    unfinished.set(who, 'was never answered')
    let round = 0
    while (!isOver) {
      const isLast = isDraining
      report.begin(who)
      const isDone = await work(round).catch((error: unknown) => {
        unfinished.set(who, `was last refused with ${String(error).slice(0, REFUSAL_CHARACTERS)}`)
        return false
      })
      if (isDone) {
        report.acknowledge()
        unfinished.set(who, 'was last acknowledged')
        round += 1
      }
      if (isDone && isLast) break
      await pause(isDone ? restMs : AGAIN_MS)
    }
    unfinished.delete(who)
  }
  const { edit, rate } = userWork(needs.facts, caller, users, report)
  const { importNext, scrape } = operatorWork(needs, report)
  const say = (sentence: string): void => report.say(sentence)
  const readers = readersOf(needs.facts, say)
  const rebuilds = rebuilder({ ...needs, projectors: needs.projectorUrls.map(operationsAt), say })
  const working = Promise.all([
    // The first rating creates the profile that is edited.
    ...users.map((me) =>
      loop(me.person.username, USER_REST_MS * calm, (round) => (round % 5 === 1 ? edit(me) : rate(me, round)))
    ),
    loop('import', OPERATOR_REST_MS * calm, importNext),
    loop('scrape', OPERATOR_REST_MS * calm, scrape),
    loop('rebuild', OPERATOR_REST_MS, rebuilds.next),
    ...needs.apiUrls.map((url) => loop(`reader of ${url}`, READER_REST_MS * calm, readers.reader(url)))
  ])
  const unfinishedText = (): string => [...unfinished].map(([who, how]) => `${who} ${how}`).join('; ')
  const stop = async (): Promise<void> => {
    if (isOver) return
    isOver = true
    await caller.close()
    await working
    needs.facts.add({ fact: 'read', ...readers.counts })
  }
  return {
    wrong: report.wrong,
    acknowledged: (count) => report.acknowledged(count),
    begun: (who) => report.begun(who),
    async rebuilt() {
      let [before, since] = [Number.POSITIVE_INFINITY, Date.now()]
      for (let left = rebuilds.unserved(); left.length > 0; left = rebuilds.unserved()) {
        if (left.length < before) [before, since] = [left.length, Date.now()]
        if (Date.now() - since > DRAIN_MS)
          throw new Error(
            `No further projection was rebuilt for ${DRAIN_MS} ms; missing: ${left.join(', ')}; ${unfinishedText()}.`
          )
        await pause(OPERATOR_REST_MS)
      }
    },
    async drain() {
      isDraining = true
      await withTimeout(working, DRAIN_MS, () => {
        throw new Error(`Not acknowledged within ${DRAIN_MS} ms: ${unfinishedText()}.`)
      })
    },
    stop
  }
}

/** Counts acknowledgements for waiting callers, and collects wrong answers. */
class LoadReport {
  readonly wrong: string[] = []
  readonly #waiting = new Set<{ left: number; resolve(): void }>()
  readonly #beginnings = new EventEmitter()

  say(sentence: string): void {
    if (this.wrong.length < WRONG_MAX) this.wrong.push(sentence)
  }

  begin(who: string): void {
    this.#beginnings.emit(who)
  }

  async begun(who: string): Promise<void> {
    await once(this.#beginnings, who)
  }

  acknowledge(): void {
    for (const one of [...this.#waiting]) {
      one.left -= 1
      if (one.left > 0) continue
      this.#waiting.delete(one)
      one.resolve()
    }
  }

  acknowledged(count: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.add({ left: count, resolve }))
  }
}

/** Each user writes sequentially, so the last acknowledged write must not be lost. */
function userWork(facts: Facts, caller: Caller, users: readonly SignedIn[], report: LoadReport) {
  let texts = Date.now()
  const send = async (
    me: SignedIn,
    [method, path, body]: readonly ['PATCH' | 'POST', string, object],
    about: { readonly what: 'rating' | 'profile'; readonly of: string; readonly text: string }
  ): Promise<boolean> => {
    facts.add({ fact: 'sent', ...about })
    const answer = await caller.ask(method, path, me, body)
    if (answer.status === 200) facts.add({ fact: 'acknowledged', ...about })
    else if (answer.status !== 503 && answer.status !== 404)
      report.say(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.status === 200
  }
  return {
    edit: (me: SignedIn): Promise<boolean> => {
      const { username } = me.person
      texts += 1
      const text = `${username} ${texts}`
      return send(me, ['PATCH', `/api/profile/${username}`, { bio: text }], { what: 'profile', of: username, text })
    },
    rate: (me: SignedIn, round: number): Promise<boolean> => {
      const other = users[(users.indexOf(me) + 1 + (round % (USERS - 1))) % USERS]?.person.username ?? ''
      texts += 1
      const text = `number ${texts}`
      const body = { stars: 1 + (texts % 5), comment: text }
      const about = { what: 'rating', of: `${other} ${me.person.username}`, text } as const
      return send(me, ['POST', `/api/profile/${other}/reputation`, body], about)
    }
  }
}

function operatorWork({ facts, operatorUrl }: LoadNeeds, report: LoadReport) {
  const operations = operationsAt(operatorUrl)
  return {
    async importNext(): Promise<boolean> {
      let file = 0
      while (facts.imported.has(file)) file += 1
      const request = { topic: 'title-count', file: `file-${file}.csv`, columns: {}, set: {}, strict: false }
      const result = await operations.run(importFile, {
        request,
        content: bytesOf(importedFile(facts.seed, file).text)
      })
      if (result.rejected > 0 || !result.finished) report.say(`import of file ${file}: ${JSON.stringify(result)}`)
      facts.add({ fact: 'imported', file })
      return true
    },
    async scrape(): Promise<boolean> {
      const [run] = await operations.run(scrape, { source: 'network' })
      if (run?.outcome !== 'succeeded') return false
      const fromMs = millisecondsOf(run.observedAt)
      facts.add({ fact: 'scraped', fromMs, toMs: fromMs + run.durationMs + 1 })
      return true
    }
  }
}

async function* bytesOf(text: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(text)
}
