import { test } from 'tap'
import {
  encodeEvent,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  LeaderboardEntryChanged as Schema
} from '../src/index.js'

const EVENT: LeaderboardEntryChanged = {
  titleId: '4d530064',
  leaderboardId: 7,
  playerName: 'ann',
  changeType: 'new',
  changedAt: '2026-03-14T20:00:00.123Z',
  rating: '01:23.456',
  timeMs: 83_456
}
const idOf = (event: LeaderboardEntryChanged) =>
  encodeEvent(leaderboardEntryTopic, event, { source: '/x' }).headers.ce_id

test('all entries of a board share its key, and each change has a unique id', (t) => {
  const others: LeaderboardEntryChanged[] = [
    EVENT,
    { ...EVENT, playerName: 'Ann' },
    { ...EVENT, occurrence: 2 },
    { ...EVENT, rating: '01:23.455', timeMs: 83_455 },
    { ...EVENT, changedAt: '2026-03-14T20:00:00.124Z' },
    { ...EVENT, leaderboardId: 8 }
  ]
  t.equal(new Set(others.map(idOf)).size, others.length)
  t.equal(encodeEvent(leaderboardEntryTopic, EVENT, { source: '/x' }).key, '4d530064/7')
  t.equal(idOf(EVENT), idOf({ ...EVENT }))
  t.end()
})

test('an entry on the board has a rating or a time; one that left needs neither', (t) => {
  const { rating: _, timeMs: __, ...bare } = EVENT
  t.equal(Schema.safeParse(bare).success, false)
  t.equal(Schema.safeParse({ ...bare, changeType: 'removed' }).success, true)
  t.equal(Schema.safeParse({ ...bare, timeMs: 0 }).success, true)
  t.equal(Schema.safeParse({ ...bare, rating: '-5' }).success, true)
  t.end()
})
