import { Refusal } from '@gamenet/schemas'
import type { BeginLocks } from '../../src/stores/divided-passes.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'

type Session = { readonly life: Life; readonly program: number; readonly own: Set<number> }

/** PostgreSQL's advisory locks of projectors and of the topics whose passes they run, held by transactions. */
export class TopicLocks {
  readonly #world: World
  readonly #sessions = new Set<Session>()
  #lastProjector = 1000

  constructor(world: World) {
    this.#world = world
  }

  /** The number of another projector. */
  nextProjector(): number {
    this.#lastProjector += 1
    return this.#lastProjector
  }

  /** The interface for `dividedPasses`. */
  readonly begin: BeginLocks = async (program, projector) => {
    const world = this.#world
    const session: Session = { life: world.time.current, program, own: new Set([projector]) }
    const held = () => [...this.#sessions].filter((each) => each.program === program).flatMap(({ own }) => [...own])
    // The connection of a process that has died meanwhile is closed.
    const begun = () => (session.life.isOver ? undefined : void this.#sessions.add(session))
    await world.call('postgres', { what: 'begins to hold topics', done: begun }).catch((error: Error) => {
      this.#sessions.delete(session)
      throw world.away.has('postgres') ? new Refusal('engine_away') : error
    })
    /** A failed or unanswered statement ends the connection. */
    const ask = async <Result>(what: string, work: () => Result): Promise<Result> => {
      const done = () => {
        if (!this.#sessions.has(session)) throw new Error('the connection to PostgreSQL has ended')
        return work()
      }
      return await world.call('postgres', { what, done }).catch((error: unknown) => {
        this.#sessions.delete(session)
        throw error
      })
    }
    return {
      held: () => ask('reads who holds topics', held),
      take: (wanted) =>
        ask('takes topics', () => {
          const free = wanted.filter((number) => !held().includes(number))
          for (const number of free) session.own.add(number)
          return free
        }),
      release: () =>
        ask('releases its topics', () => {
          session.own.clear()
          session.own.add(projector)
        }),
      check: () => ask('checks that it holds its topics', () => undefined),
      end: async () => void (await ask('leaves its topics', () => this.#sessions.delete(session)).catch(() => false))
    }
  }

  /** Releases the locks of a process that has died. */
  noticeDeath(life: Life): void {
    for (const each of this.#sessions) if (each.life === life) this.#sessions.delete(each)
  }

  /** Ends all transactions. */
  disconnect(): void {
    this.#sessions.clear()
  }
}
