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
