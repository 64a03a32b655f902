import { setTimeout as pause } from 'node:timers/promises'
import { startUpstream, type Upstream } from '../../test/service/upstream.js'
import type { Facts } from './facts.js'
import { shownAt } from './world.js'

export type SteppingUpstream = Pick<Upstream, 'url' | 'close'> & {
  /** Stops all changes. */
  freeze(): void
}

/** No answer is sent in the last 25 ms of a second, because pages are dated by the second of their answer. */
const BOUNDARY_MS = 25

/** An upstream network that advances one step in each second in which its home page is requested. */
export async function startSteppingUpstream(facts: Facts): Promise<SteppingUpstream> {
  const upstream = await startUpstream()
  let isFrozen = false
  let second = 0
  const show = (step: number): void => {
    const shown = shownAt(facts.seed, step)
    upstream.show(shown)
    upstream.showPlayers(shown.players)
    for (const [titleId, game] of shown.games) upstream.showGame(titleId, game)
  }
  show(facts.lastStep())
  upstream.beforeAnswer = async (path) => {
    // Unused here, it would grow for hours.
    upstream.asked.length = 0
    const leftMs = 1000 - (Date.now() % 1000)
    if (leftMs < BOUNDARY_MS) await pause(leftMs + 1)
    const now = Math.floor(Date.now() / 1000)
    if (path !== '/' || isFrozen || now === second) return
    second = now
    const step = facts.lastStep() + 1
    facts.add({ fact: 'shown', step, second })
    show(step)
  }
  return {
    url: upstream.url,
    close: () => upstream.close(),
    freeze() {
      isFrozen = true
    }
  }
}
