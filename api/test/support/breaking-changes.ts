type Json = { readonly [key: string]: unknown }
type Named = Readonly<Record<string, Json>>
type Operation = Json & { readonly operationId: string; readonly parameters?: readonly Json[] }

/**
 * Returns the changes of a description that break clients of the former one, a sentence each that begins with the name
 * of the operation or schema: operations, parameters and fields that are missing, of another type, newly required or
 * narrower.
 */
export function breakingChanges(before: Json, after: Json): string[] {
  const now = operationsOf(after)
  const operations = [...operationsOf(before)].flatMap(([route, old]) => {
    const operation = now.get(route)
    if (operation?.operationId !== old.operationId) return [`${old.operationId} is gone from ${route}`]
    return [
      ...fields(old.operationId, parametersOf(old), parametersOf(operation), true),
      ...(signature(old) === signature(operation) ? [] : [`${old.operationId} takes or answers another schema`])
    ]
  })
  const schemasNow = schemasOf(after)
  const schemas = Object.entries(schemasOf(before)).flatMap(([name, old]) => {
    const schema = schemasNow[name]
    // An operation that used it is named above.
    if (schema === undefined) return []
    if (kind(old) !== kind(schema)) return [`${name} is of another type`]
    return fields(name, fieldsOf(old), fieldsOf(schema), name.endsWith('Body'))
  })
  return [...operations, ...schemas]
}

/** A field of a schema, or a parameter: its schema, and whether it is always present. */
type Field = { readonly schema: Json; readonly isRequired: boolean }

function fields(of: string, before: Map<string, Field>, after: Map<string, Field>, isSent: boolean): string[] {
  const gone = [...before.keys()].filter((name) => !after.has(name)).map((name) => `${of} has no ${name} any more`)
  const changed = [...after].flatMap(([name, { schema, isRequired }]) => {
    const old = before.get(name)
    if (isSent && isRequired && old?.isRequired !== true) return [`${of} requires ${name}`]
    if (old === undefined) return []
    if (!isSent && old.isRequired && !isRequired) return [`${of} may come without ${name}`]
    if (kind(old.schema) !== kind(schema)) return [`${of} has a ${name} of another type`]
    return isSent && isNarrower(old.schema, schema) ? [`${of} takes fewer values of ${name}`] : []
  })
  return [...gone, ...changed]
}

function isNarrower(old: Json, schema: Json): boolean {
  const bound = (of: Json, name: string, otherwise: number) => Number(of[name] ?? otherwise)
  const words = (schema.enum as unknown[] | undefined) ?? (old.enum as unknown[] | undefined) ?? []
  return (
    bound(schema, 'minimum', -Infinity) > bound(old, 'minimum', -Infinity) ||
    bound(schema, 'maximum', Infinity) < bound(old, 'maximum', Infinity) ||
    bound(schema, 'maxLength', Infinity) < bound(old, 'maxLength', Infinity) ||
    ((old.enum as unknown[] | undefined) ?? []).some((word) => !words.includes(word))
  )
}

/** The parts of a schema that determine the type of a value in a client. */
function kind({ type, format, const: constant, $ref, items, anyOf, oneOf, additionalProperties }: Json): string {
  const list = (each: unknown) => (Array.isArray(each) ? each.map((one) => kind(one as Json)) : undefined)
  const one = (each: unknown) => (typeof each === 'object' && each !== null ? kind(each as Json) : undefined)
  return JSON.stringify([type, format, constant, $ref, one(items), list(anyOf ?? oneOf), one(additionalProperties)])
}

function signature({ requestBody, responses }: Json): string {
  const ofContent = (each: unknown) =>
    (each as { content?: { 'application/json': { schema: Json } } } | undefined)?.content?.['application/json'].schema
  return JSON.stringify([ofContent(requestBody), ofContent((responses as Named)['200'])])
}

function operationsOf({ paths }: Json): Map<string, Operation> {
  return new Map(
    Object.entries(paths as Named).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation as Operation])
    )
  )
}

function schemasOf({ components }: Json): Named {
  return (components as { readonly schemas: Named }).schemas
}

function parametersOf({ parameters = [] }: Operation): Map<string, Field> {
  return new Map(
    parameters.map(({ name, required, schema }) => [
      String(name),
      { schema: schema as Json, isRequired: required === true }
    ])
  )
}

function fieldsOf({ properties = {}, required = [] }: Json): Map<string, Field> {
  return new Map(
    Object.entries(properties as Named).map(([name, schema]) => [
      name,
      { schema, isRequired: (required as readonly string[]).includes(name) }
    ])
  )
}
