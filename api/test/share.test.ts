import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { Share, type Turn } from '../src/stream/share.js'

test('300 streams that catch up leave most turns of the event loop to others', async (t) => {
  let nowMs = 0
  const share = new Share(() => nowMs)
  let pieces = 0
  let left = 300
  let sinceTurn = 0
  let mostPerTurn = 0
  const stream = async (): Promise<void> => {
    for (let piece = 0; piece < 10; piece += 1) {
      await share.turn('catch-up')
      // A millisecond of work.
      nowMs += 1
      pieces += 1
      sinceTurn += 1
      mostPerTurn = Math.max(mostPerTurn, sinceTurn)
    }
    left -= 1
  }
  const all = Promise.all(Array.from({ length: 300 }, stream))
  let turns = 0
  while (left > 0) {
    await nextTurn()
    sinceTurn = 0
    turns += 1
  }
  await all
  t.equal(pieces, 3000)
  t.ok(mostPerTurn <= 2, `${mostPerTurn} ms of work in one turn`)
  // Each accepts a connection and answers requests.
  t.ok(turns >= (7 * pieces) / 2, `${turns} turns for ${pieces} pieces`)
})

test('connections that arrive are accepted before streams continue, which are not starved', async (t) => {
  let nowMs = 0
  const share = new Share(() => nowMs)
  let pieces = 0
  let isOver = false
  const stream = (async () => {
    for (; !isOver; pieces += 1) {
      await share.turn('catch-up')
      nowMs += 1
    }
  })()
  // One a turn, as Node accepts them.
  const accept = async (connections: number): Promise<number> => {
    const before = pieces
    for (let n = 0; n < connections; n += 1) {
      await nextTurn()
      nowMs += 1
      share.accepted()
    }
    return pieces - before
  }
  const piecesBetween = await accept(1000)
  t.ok(piecesBetween >= 5 && piecesBetween <= 60, `${piecesBetween} pieces between 1,000 connections`)
  isOver = true
  await stream
})

test('a new stream waits for one that catches up, not for all of them', async (t) => {
  let nowMs = 0
  const share = new Share(() => nowMs)
  const order: string[] = []
  const step = async (name: string, of: Turn): Promise<void> => {
    await share.turn(of)
    nowMs += 1
    order.push(name)
  }
  const catchingUp = Array.from({ length: 50 }, (_, n) => step(`old ${n}`, 'catch-up'))
  await Promise.all([step('new 1', 'begin'), step('new 2', 'begin')])
  t.ok(order.indexOf('new 2') <= 4, order.join())
  await Promise.all(catchingUp)
  t.equal(order.length, 52)
})

test('while other work fills the turns, streams advance nevertheless', async (t) => {
  let nowMs = 0
  const share = new Share(() => nowMs)
  let isDone = false
  const busy = (async () => {
    let turns = 0
    for (; !isDone; turns += 1) {
      // Each turn of the event loop takes 50 ms.
      nowMs += 50
      await nextTurn()
    }
    return turns
  })()
  for (let piece = 0; piece < 100; piece += 1) await share.turn('catch-up')
  isDone = true
  t.ok((await busy) <= 250, 'about one turn a piece')
})
