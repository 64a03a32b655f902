import { test } from 'tap'
import * as writeSide from '../src/ports/write-side.js'

test('no two locks of PostgreSQL have the same number', async (t) => {
  const locks = Object.entries(writeSide).filter(([name]) => name.endsWith('_LOCK'))
  t.ok(locks.length > 4)
  t.equal(new Set(locks.map(([, number]) => number)).size, locks.length)
})
