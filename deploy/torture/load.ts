import { setTimeout as wait } from 'node:timers/promises'
import { millisecondsOf } from '@gamenet/schemas'
import type { DemoAuth } from '../src/demo-auth/server.js'
import { operatorClient } from '../src/operator/operator-client.js'
import { Caller, signIn } from '../test/service/people-service.js'
import type { Facts } from './facts.js'
import { importedFile } from './world.js'

/*
 * Users who rate and edit, files that are imported, scrapes that are asked for: all of it again and again, whatever
 * dies. What was acknowledged is kept as a fact.
 */

export type Load = {
  /** Resolves after so many more acknowledgements. */
  acknowledged(count: number): Promise<void>
  /** What was answered and must not be. */
  readonly wrong: string[]
  /** Ends after one more acknowledgement of each kind, or rejects when none comes. */
  drain(): Promise<void>
  /** Ends at once. */
  stop(): Promise<void>
}

const USERS = 6
const REST_MS = 40
const AGAIN_MS = 50
const DRAIN_MS = 120_000
const WRONG_MAX = 20

export async function startLoad(needs: {
  readonly facts: Facts
  readonly auth: DemoAuth
  readonly apiUrl: string
  /** Of a process that imports and scrapes. */
  readonly operatorUrl: string
}): Promise<Load> {
  const { facts, auth } = needs
  const users = await Promise.all(auth.people.slice(0, USERS).map((person) => signIn(auth, person)))
  const caller = new Caller({ apiUrl: needs.apiUrl }, USERS)
  const operations = operatorClient(needs.operatorUrl)
  const wrong: string[] = []
  const waiting = new Set<{ left: number; resolve(): void }>()
  let isDraining = false
  let isOver = false
  let texts = facts.counts.ratings + facts.counts.edits + Date.now()
  const acknowledge = (): void => {
    for (const one of [...waiting]) {
      one.left -= 1
      if (one.left > 0) continue
      waiting.delete(one)
      one.resolve()
    }
  }
  const told = (sentence: string): void => {
    if (wrong.length < WRONG_MAX) wrong.push(sentence)
  }
  /** Does `work` until it is drained: once more behind that. What is refused or cut off is tried again. */
  const loop = async (restMs: number, work: (round: number) => Promise<boolean>): Promise<void> => {
    for (let round = 0; !isOver; round += 1) {
      const isLast = isDraining
      const isDone = await work(round).catch(() => false)
      if (isDone && isLast) return
      await wait(isDone ? restMs : AGAIN_MS)
    }
  }
  const send = async (
    me: (typeof users)[number],
    write: { method: 'PATCH' | 'POST'; path: string; body: object },
    about: { what: 'rating' | 'profile'; of: string; text: string }
  ): Promise<boolean> => {
    facts.add({ fact: 'sent', ...about })
    const { status, body } = await caller.ask(write.method, write.path, me, write.body)
    if (status === 200) {
      facts.add({ fact: 'acknowledged', ...about })
      acknowledge()
    } else if (status !== 503 && status !== 404)
      told(`${write.method} ${write.path}: ${status} ${JSON.stringify(body)}`)
    return status === 200
  }
  const edit = (me: (typeof users)[number]): Promise<boolean> => {
    const { username } = me.person
    texts += 1
    const text = `${username} ${texts}`
    const write = { method: 'PATCH', path: `/api/profile/${username}`, body: { bio: text } } as const
    return send(me, write, { what: 'profile', of: username, text })
  }
  const rate = (me: (typeof users)[number], round: number): Promise<boolean> => {
    const other = users[(users.indexOf(me) + 1 + (round % (USERS - 1))) % USERS]?.person.username ?? ''
    texts += 1
    const text = `number ${texts}`
    const body = { stars: 1 + (texts % 5), comment: text }
    const write = { method: 'POST', path: `/api/profile/${other}/reputation`, body } as const
    return send(me, write, { what: 'rating', of: `${other} ${me.person.username}`, text })
  }
  const importNext = async (): Promise<boolean> => {
    let file = 0
    while (facts.imported.has(file)) file += 1
    const { text } = importedFile(facts.seed, file)
    const request = { topic: 'title-count', file: `file-${file}.csv`, columns: {}, set: {}, strict: false }
    const report = await operations.import(
      request,
      [Buffer.from(text)] as unknown as AsyncIterable<Uint8Array>,
      () => {}
    )
    if (report.rejected > 0 || !report.finished) told(`import of file ${file}: ${JSON.stringify(report)}`)
    facts.add({ fact: 'imported', file })
    acknowledge()
    return true
  }
  const scrape = async (): Promise<boolean> => {
    const [run] = await operations.scrape('network')
    if (run === undefined || run.outcome !== 'succeeded') return false
    const fromMs = millisecondsOf(run.observedAt)
    facts.add({ fact: 'scraped', fromMs, toMs: fromMs + run.durationMs + 1 })
    acknowledge()
    return true
  }
  const working = Promise.all([
    ...users.map((me) => loop(REST_MS, (round) => (round % 5 === 0 ? edit(me) : rate(me, round)))),
    loop(300, importNext),
    loop(300, scrape)
  ])
  const end = async (): Promise<void> => {
    isOver = true
    await caller.close()
    await working
  }
  return {
    wrong,
    acknowledged: (count) => new Promise((resolve) => waiting.add({ left: count, resolve })),
    async drain() {
      isDraining = true
      const late = wait(DRAIN_MS, 'late', { ref: false })
      const isLate = (await Promise.race([working, late])) === 'late'
      await end()
      if (isLate) throw new Error(`Not everything that was asked for was acknowledged within ${DRAIN_MS} ms.`)
    },
    stop: end
  }
}
