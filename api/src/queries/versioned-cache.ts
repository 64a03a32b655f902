import type { ServingTables } from '@gamenet/schemas'

/**
 * Caches one value until its data version changes. Concurrent calls share one load; a failed load is repeated by the
 * next call.
 */
export function versionedCache<Value>(versionOf: () => number, load: () => Promise<Value>): () => Promise<Value> {
  let cached: { readonly version: number; readonly value: Promise<Value> } | undefined
  return () => {
    const version = versionOf()
    if (cached?.version === version) return cached.value
    const loading = { version, value: load() }
    cached = loading
    loading.value.catch(() => {
      if (cached === loading) cached = undefined
    })
    return loading.value
  }
}

/**
 * Opens a cache for tables, and a new one when answers may read others. A request that still uses former tables gets a
 * separate cache: it must neither mix them with newer ones nor leave them to later requests.
 */
export function servingCache<Cache>(open: (serving: ServingTables) => Cache): (serving: ServingTables) => Cache {
  let newest: { readonly counter: number; readonly cache: Cache } | undefined
  return (serving) => {
    const { counter } = serving
    if (newest?.counter === counter) return newest.cache
    const cache = open(serving)
    if (newest === undefined || newest.counter < counter) newest = { counter, cache }
    return cache
  }
}
