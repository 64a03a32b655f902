import { topics } from '@gamenet/schemas'
import type { Projection } from './projection.js'
import type { Tables } from './tables.js'

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
  return { ...rest, from } as Projection
}

/** White space says nothing in statements. */
function single(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : value
}

/**
 * By which statements the read tables are made now. A program whose projection was changed goes on with the one that made the
 * table that serves, until a rebuild by the new one is swapped in; a projection that nobody knew yet serves at once.
 */
export class ServingDefinitions {
  readonly #tables: Tables
  readonly #projections: readonly Projection[]
  /** Others may install too; asked at every call. */
  readonly #isShared: boolean
  #version = -1
  #serving: readonly Projection[] | undefined

  constructor(tables: Tables, projections: readonly Projection[], isShared: boolean) {
    this.#tables = tables
    this.#projections = projections
    this.#isShared = isShared
  }

  /** The projections that serve, in the order of this program's. */
  async current(): Promise<readonly Projection[]> {
    if (this.#serving !== undefined && (!this.#isShared || (await this.#newest()) === this.#version))
      return this.#serving
    const version = await this.#newest()
    const rows = await this.#tables.rows(
      'SELECT d.name AS name, argMax(d.definition, d.version) AS definition FROM projection_definition AS d GROUP BY d.name'
    )
    const stored = new Map(rows.map(({ name, definition }) => [String(name), String(definition)]))
    const unknown = this.#projections.filter(({ name }) => !stored.has(name))
    if (unknown.length > 0) await this.#store(unknown.map((each) => [each.name, definitionOf(each)]))
    this.#version = unknown.length > 0 ? await this.#newest() : version
    this.#serving = this.#projections.map((each) => {
      const definition = stored.get(each.name)
      return definition === undefined || definition === definitionOf(each) ? each : projectionOf(definition)
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
    await this.#store(projections.map((each) => [each.name, definitionOf(each)]))
    this.#serving = undefined
  }

  async #newest(): Promise<number> {
    const [row] = await this.#tables.rows('SELECT max(d.version) AS version FROM projection_definition AS d')
    return Number(row?.version ?? 0)
  }

  async #store(definitions: readonly (readonly [string, string])[]): Promise<void> {
    const version = Math.max(Date.now(), (await this.#newest()) + 1)
    const lines = definitions.map((each) => JSON.stringify([...each, version]))
    const body = new TextEncoder().encode(`${lines.join('\n')}\n`)
    await this.#tables.insert('projection_definition', ['name', 'definition', 'version'], body)
  }
}
