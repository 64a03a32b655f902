import { test } from 'tap'
import { provesPeopleAtOnce } from './service/people-at-once.js'

const CLIENTS = 200
const SECONDS = 60

test('200 clients rate, edit and read at once for a minute: no update is lost, no client sees another’s answer', (t) => {
  let begun: number | undefined
  return provesPeopleAtOnce(t, CLIENTS, () => {
    begun ??= performance.now()
    return performance.now() - begun < SECONDS * 1000
  })
})
