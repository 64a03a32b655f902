import { z } from 'zod'

/** A value in JSON. */
export type Json = Record<string, unknown>

/**
 * The components of one document. Every object of a schema becomes a named one, because generators of clients name
 * types after components. The name is its `id`, else it is derived from its property (`PlayerBoard` for `boards` of
 * `Player`).
 */
export class Components {
  readonly #schemas = new Map<string, Json>()
  readonly #responses = new Map<string, Json>()

  /** Returns the JSON Schema of a value, by reference if it has a name. `name` is for schemas without an `id`. */
  schema(schema: z.ZodType, io: 'input' | 'output', name: string): Json {
    // The object around the schema makes the schema itself one of the definitions, if it has an id.
    const { $defs, properties } = jsonSchema(z.object({ it: schema }), io) as { $defs?: Json; properties: { it: Json } }
    return this.#named({ ...properties.it, ...($defs === undefined ? {} : { $defs }) }, name)
  }

  /** Adds a schema in JSON and returns a reference to it. */
  add(name: string, schema: Json): Json {
    const known = this.#schemas.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two schemas are called ${name}; give one of them another id.`)
    }
    this.#schemas.set(name, schema)
    return { $ref: `#/components/schemas/${name}` }
  }

  /** Returns the schema that was added under a name. */
  named(name: string): Json {
    return this.#schemas.get(name) ?? {}
  }

  /** Adds a response under a name and returns a reference to it. */
  response(name: string, response: Json): Json {
    this.#responses.set(name, response)
    return { $ref: `#/components/responses/${name}` }
  }

  /** Returns all components by name. */
  all(): Json {
    return { schemas: sorted(this.#schemas), responses: sorted(this.#responses) }
  }

  #named(schema: Json, name: string): Json {
    const { $defs, $ref, ...rest } = schema
    for (const [id, definition] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
      const named = this.#named(definition, id)
      if (named.$ref === undefined) this.add(id, named)
    }
    if (typeof $ref === 'string') return { $ref: `#/components/schemas/${$ref.split('/').at(-1)}`, ...rest }
    const { properties, items, additionalProperties, anyOf, oneOf } = rest as Record<string, Json & Json[]>
    if (items !== undefined) rest.items = this.#named(items, itemName(name))
    if (typeof additionalProperties === 'object')
      rest.additionalProperties = this.#named(additionalProperties, `${name}Value`)
    if (anyOf !== undefined) rest.anyOf = anyOf.map((each) => this.#named(each, name))
    if (oneOf !== undefined) rest.oneOf = oneOf.map((each) => this.#named(each, name))
    if (properties !== undefined) {
      rest.properties = Object.fromEntries(
        Object.entries(properties as unknown as Record<string, Json>).map(([key, property]) => [
          key,
          this.#named(property, name + pascal(key))
        ])
      )
    }
    return properties === undefined ? rest : this.add(name, rest)
  }
}

/**
 * Returns the JSON Schema of a value, without `$schema`. Objects of answers may get further fields in later versions.
 */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
      // openapi-generator applies a pattern to the parsed date, and its client in Python then fails.
      if (jsonSchema.format === 'date-time' || jsonSchema.format === 'date') delete jsonSchema.pattern
      // Generators treat an integer without a format as one of 32 bits.
      if (jsonSchema.type === 'integer' && Number(jsonSchema.maximum) > INT32_MAX) jsonSchema.format ??= 'int64'
    }
  })
  return rest
}

const INT32_MAX = 2_147_483_647

/** Returns `someName` or `some_name` as `SomeName`. */
export function pascal(name: string): string {
  return name.replace(/(?:^|_)([a-z])/g, (_, first: string) => first.toUpperCase())
}

function itemName(name: string): string {
  const singular = name.replace(/ies$/, 'y').replace(/(?<=ch)es$|(?<!s)s$/, '')
  return singular === name ? `${name}Item` : singular
}

function sorted(all: ReadonlyMap<string, Json>): Json {
  return Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)))
}
