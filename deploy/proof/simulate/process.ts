import type { Life } from './virtual-time.js'
import type { World } from './world.js'

/** The program in a process; `stop` ends it gracefully. */
export type Running = { stop(): Promise<void> }

const RESTART_MS_MAX = 8000
/** A graceful stop that takes longer ends in a `kill -9`. */
const STOP_MS_MAX = 15_000

/** A process that is restarted after each end, without its memory; its clock continues. */
export class Process {
  life: Life
  readonly name: string
  readonly #world: World
  readonly #start: (process: Process) => Running
  readonly #threads: Life[] = []
  #running: Running | undefined
  #lives = 0
  skewMs = 0

  constructor(world: World, name: string, start: (process: Process) => Running) {
    this.name = name
    this.#world = world
    this.#start = start
    this.life = { name, isOver: true, skewMs: 0 }
  }

  start(): void {
    this.#lives += 1
    this.life = { name: `${this.name}.${this.#lives}`, isOver: false, skewMs: this.skewMs }
    const { life } = this
    this.#world.time.after(life, 0, () => {
      this.#world.note('starts')
      this.#running = this.#start(this)
    })
  }

  /** Adds a thread, which dies with the process or separately. */
  thread(name: string): Life {
    const life = { name: `${this.life.name}/${name}`, isOver: false, skewMs: this.skewMs }
    this.#threads.push(life)
    return life
  }

  owns(life: Life): boolean {
    return life === this.life || this.#threads.includes(life)
  }

  /** Ends everything that the process waits for. */
  die(): readonly Life[] {
    if (this.life.isOver) return []
    const dead = [this.life, ...this.#threads.splice(0).filter(({ isOver }) => !isOver)]
    for (const life of dead) life.isOver = true
    this.#running = undefined
    this.#world.note('is dead', this.life)
    return dead
  }

  restMs(): number {
    return this.#world.chance.below(RESTART_MS_MAX)
  }

  /** Ends gracefully, as for SIGTERM; calls `onEnd` at the end. */
  stop(onEnd: () => void): void {
    const { life } = this
    const running = this.#running
    if (life.isOver || running === undefined) return
    this.#running = undefined
    this.#world.time.after(life, 0, () => {
      this.#world.note('stops')
      void running.stop().then(() => {
        if (!life.isOver) onEnd()
      })
    })
    this.#world.time.after(life, STOP_MS_MAX, onEnd)
  }

  /** Sets its clock. */
  jump(ms: number): void {
    this.skewMs += ms
    this.#world.note(`its clock jumps by ${ms} ms`, this.life)
    for (const life of [this.life, ...this.#threads]) life.skewMs = this.skewMs
  }
}
