import { test } from 'tap'
import { provesPeopleAtOnce } from './service/people-at-once.js'

const CLIENTS = 24
const STEPS = 6

test('24 clients rate, edit and read at once: no update is lost, no client sees another’s answer', (t) =>
  provesPeopleAtOnce(t, CLIENTS, (step) => step <= STEPS))
