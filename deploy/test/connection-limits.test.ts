import { test } from 'tap'
import { connectionLimit, connectionsText } from '../src/run/connection-limits.js'

test('connections leave descriptors for the engines, whatever the limit, and have a bound without one', async (t) => {
  const warnings: string[] = []
  const logger = { warn: (sentence: string) => warnings.push(sentence) } as never
  for (const [descriptors, wanted, connections] of [
    [256, undefined, 64],
    [1024, undefined, 256],
    [1300, undefined, 325],
    [4096, undefined, 3072],
    [20_000, undefined, 15_000],
    [65_536, undefined, 20_000],
    [Number.POSITIVE_INFINITY, undefined, 20_000],
    [65_536, 30_000, 30_000],
    [Number.POSITIVE_INFINITY, 50_000, 50_000],
    [4096, 10, 10]
  ] as const) {
    const limit = connectionLimit({ CONNECTIONS_MAX: wanted }, logger, descriptors)
    t.same(limit, { connectionsMax: connections, descriptorsMax: descriptors }, `${descriptors}, ${wanted}`)
  }
  t.same(warnings, [])
  t.equal(connectionLimit({ CONNECTIONS_MAX: 10_000 }, logger, 4096).connectionsMax, 3072)
  t.match(warnings, [/^CONNECTIONS_MAX is 10000, and 4096 open files \(ulimit -n\) allow 3072 besides/])
})

test('doctor names the limit of this process and what is open', async (t) => {
  const found = await connectionsText(connectionLimit({ CONNECTIONS_MAX: undefined }, { warn: () => undefined }))
  t.match(found, /^at most \d+ at once \(CONNECTIONS_MAX\); the process may open .* files \(ulimit -n\)/)
  t.equal(
    await connectionsText({ connectionsMax: 20_000, descriptorsMax: Number.POSITIVE_INFINITY }).then((text) =>
      text.replace(/, of which \d+ are open/, '')
    ),
    'at most 20000 at once (CONNECTIONS_MAX); the process may open any number of files (ulimit -n)'
  )
})
