import { topics } from '@gamenet/schemas'
import type { Store } from '../store/operation.js'
import { readDefinitions, readNewestDefinition, storeDefinitions } from '../store/projection-definition.js'
import { withIdentifiers } from './older-definition.js'
import type { PassLock } from './pass-lock.js'
import type { Projection } from './projection.js'

/** A projection as text: all that its rows follow from. */
export function definitionOf({ from, ...rest }: Projection): string {
  return JSON.stringify({ ...rest, from: from.name }, single)
}

/** The projection of a text. Throws when its topic is unknown to this program. */
export function projectionOf(definition: string): Projection {
  const { from: name, ...rest } = JSON.parse(definition) as Omit<Projection, 'from'> & { from: string }
  const from = topics.find((topic) => topic.name === name)
  if (from === undefined)
    throw new Error(`A projection that serves reads the topic ${name}, which this program does not know.`)
  return withIdentifiers({ ...rest, from } as Projection)
}

/** White space says nothing in statements. */
function single(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : value
}

/**
 * By which statements the read tables are made now. A program whose projection was changed continues with the one that made the
 * table that serves, until a rebuild by the new one is swapped in; a projection that nobody knew yet serves at once.
 */
export class ServingDefinitions {
  readonly #store: Store
  readonly #projections: readonly Projection[]
  /** Others may install too; asked at every call. */
  readonly #isShared: boolean
  #version = -1
  #serving: readonly Projection[] | undefined
  #isRegistered = false

  constructor(store: Store, projections: readonly Projection[], isShared: boolean) {
    this.#store = store
    this.#projections = projections
    this.#isShared = isShared
  }

  /**
   * Makes those of this program serve that nobody knew yet. Alone: of two programs that come at once the first one's serve, and
   * the other's make no row. Rejects where nobody can be alone; then the others serve, and it is to be called again.
   */
  async register({ exclusive: alone }: Pick<PassLock, 'exclusive'>): Promise<void> {
    if (this.#isRegistered) return
    if ((await this.#unknown()).length > 0) {
      await alone(async (check) => {
        const unknown = await this.#unknown()
        await check()
        if (unknown.length > 0) await this.install(unknown)
      })
    }
    // What was asked for before did not know them, also where only the answer of an earlier attempt was lost.
    this.#serving = undefined
    this.#isRegistered = true
  }

  /** The projections that serve, in the order of this program's; without those that nobody knows yet. */
  async current(): Promise<readonly Projection[]> {
    if (this.#serving !== undefined && (!this.#isShared || (await this.#newest()) === this.#version))
      return this.#serving
    const version = await this.#newest()
    const stored = await this.#stored()
    this.#version = version
    this.#serving = this.#projections.flatMap((each) => {
      const definition = stored.get(each.name)
      if (definition === undefined) return []
      const serving = projectionOf(definition)
      return [definitionOf(serving) === definitionOf(each) ? each : serving]
    })
    return this.#serving
  }

  /** Whether another definition serves than this program's. */
  isOutdated(name: string): boolean {
    const serving = this.#serving?.find((each) => each.name === name)
    return serving !== undefined && !this.#projections.includes(serving)
  }

  /** From now on the tables are made by these. */
  async install(projections: readonly Projection[]): Promise<void> {
    const version = Math.max(Date.now(), (await this.#newest()) + 1)
    const definitions = projections.map((each) => ({ name: each.name, definition: definitionOf(each) }))
    await this.#store.do(storeDefinitions, version, definitions)
    this.#serving = undefined
  }

  async #unknown(): Promise<readonly Projection[]> {
    const stored = await this.#stored()
    return this.#projections.filter(({ name }) => !stored.has(name))
  }

  #stored(): Promise<ReadonlyMap<string, string>> {
    return this.#store.do(readDefinitions)
  }

  #newest(): Promise<number> {
    return this.#store.do(readNewestDefinition)
  }
}
