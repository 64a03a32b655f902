import { EventEmitter, once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '@gamenet/schemas'
import { type Environment, type Launched, launchGamenet } from '../../test/service/gamenet.js'

/** A process that can be killed and started again. */
export type Actor = {
  readonly name: string
  /** Whether it runs or starts, so that it can be killed. */
  isAlive(): boolean
  /** Kills it, after a stop request with `afterMs`, and restarts it after `downMs`. Resolves when it runs. */
  strike(blow: Blow): Promise<void>
  /** Pauses it (SIGSTOP) for this time. */
  freeze?(ms: number): Promise<void>
}

export type Blow = {
  readonly downMs: number
  /** Time between a stop request and the kill. */
  readonly afterMs?: number | undefined
}

const AGAIN_MS = 500
const UP_MS_MAX = 240_000
const LAST_CHARACTERS = 1000
/** Enough for a machine with other load. */
const STOP_MS_MAX = 60_000

/** A process that is restarted whenever it ends, as by a supervisor. */
export class Role implements Actor {
  readonly name: string
  readonly #start: () => Launched
  readonly #needs: { readonly written: (text: string) => void; readonly fault: (sentence: string) => void }
  #life: Launched | undefined
  /** The processes whose end is expected. */
  readonly #ordered = new WeakSet<Launched>()
  #downMs = 0
  #isWanted = false
  #living: Promise<void> = Promise.resolve()
  #isRunning = false
  readonly #events = new EventEmitter()

  constructor(
    name: string,
    command: string,
    environment: Environment,
    needs: { readonly written: (text: string) => void; readonly fault: (sentence: string) => void }
  ) {
    this.name = name
    this.#needs = needs
    this.#start = () => launchGamenet(environment, command)
  }

  start(): Promise<void> {
    this.#isWanted = true
    this.#living = this.#live()
    return this.isUp()
  }

  /** Resolves when it runs; rejects if it does not start. */
  async isUp(): Promise<void> {
    if (this.#isRunning) return
    try {
      await once(this.#events, 'up', { signal: AbortSignal.timeout(UP_MS_MAX) })
    } catch {
      throw new Error(`${this.name} did not come up within ${UP_MS_MAX} ms: ${this.#life?.stderr().slice(-2000)}`)
    }
  }

  isAlive(): boolean {
    return this.#life?.isAlive() ?? false
  }

  /** Returns the end of its output, for diagnosis. */
  outputTail(): string {
    return `${this.name}${this.isAlive() ? '' : ' (ended)'}: ${this.#life?.stderr().slice(-LAST_CHARACTERS)}`
  }

  async strike({ downMs, afterMs }: Blow): Promise<void> {
    this.#downMs = downMs
    const life = this.#life
    if (afterMs !== undefined) {
      this.#end('SIGTERM')
      await pause(afterMs)
    }
    // It may have ended meanwhile, and another process may have started.
    if (this.#life === life) this.#end('SIGKILL')
    await this.isUp()
  }

  async freeze(ms: number): Promise<void> {
    const life = this.#life
    life?.process.kill('SIGSTOP')
    await pause(ms)
    life?.process.kill('SIGCONT')
  }

  /** Stops it by SIGTERM; reports another exit code than 0 as a fault. */
  async stop(): Promise<void> {
    this.#isWanted = false
    const life = this.#life
    this.#end('SIGTERM')
    if ((await withTimeout(Promise.resolve(this.#living), STOP_MS_MAX, () => 'late')) === 'late') {
      life?.process.kill('SIGKILL')
      await this.#living
    }
    if (life !== undefined && life.process.exitCode !== 0)
      this.#needs.fault(`${this.name} ended with ${life.process.signalCode ?? life.process.exitCode} at SIGTERM`)
  }

  /** Kills it, without a restart. */
  async kill(): Promise<void> {
    this.#isWanted = false
    this.#end('SIGKILL')
    await this.#living
  }

  #end(signal: NodeJS.Signals): void {
    const life = this.#life
    if (life === undefined) return
    this.#ordered.add(life)
    this.#isRunning = false
    life.process.kill(signal)
  }

  async #live(): Promise<void> {
    while (this.#isWanted) {
      const life = this.#start()
      this.#life = life
      const ended = once(life.process, 'exit')
      const isListening = await life.listening.then(
        () => true,
        () => false
      )
      if (isListening && !this.#ordered.has(life)) {
        this.#isRunning = true
        this.#events.emit('up')
      }
      await ended
      this.#needs.written(life.stderr())
      if (!this.#isWanted) return
      if (this.#ordered.has(life)) await pause(this.#downMs)
      else {
        // A start without an engine fails with a message; a running process continues without one.
        if (isListening) {
          this.#isRunning = false
          this.#needs.fault(
            `${this.name} ended by itself with ${life.process.signalCode ?? life.process.exitCode}: ${life.stderr().slice(-1000)}`
          )
        }
        await pause(AGAIN_MS)
      }
    }
  }
}
