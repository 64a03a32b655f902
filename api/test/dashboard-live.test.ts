import { test } from 'tap'

const { followStream } = (await import(new URL('../../dashboard/live.js', import.meta.url).href)) as {
  followStream(onChange: () => void): void
}

test('the dashboard shows at once what is left after an import was undone', async (t) => {
  const sources: EventTarget[] = []
  class Source extends EventTarget {
    constructor() {
      super()
      sources.push(this)
    }
  }
  const page = { document: Object.assign(new EventTarget(), { hidden: false }), EventSource: Source }
  const { document, EventSource, addEventListener } = globalThis as Record<string, unknown>
  t.teardown(() => Object.assign(globalThis, { document, EventSource, addEventListener }))
  Object.assign(globalThis, page, { addEventListener: () => undefined })
  let changes = 0
  followStream(() => {
    changes += 1
  })
  sources[0]?.dispatchEvent(new Event('retracted'))
  t.equal(changes, 1)
})
