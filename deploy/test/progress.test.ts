import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { test } from 'tap'
import { lineOf, type Progress, showProgress } from '../src/terminal/progress.js'

const HALF: Progress = { label: 'title-count-hour', share: 0.5, details: ['165346 events/s'], etaSeconds: 12 }

test('a bar leaves columns for the percentage and the remaining time on terminals of any width', async (t) => {
  const rest = '50 % | 165346 events/s | 12 s left'
  for (const [columns, line] of [
    [200, new RegExp(`^title-count-hour █{20}░{20} ${rest}$`)],
    [80, new RegExp(`^title-count-hour █{14}░{13} ${rest}$`)],
    [53, new RegExp(`^title-count-hour  ${rest}$`)],
    [40, new RegExp(`^…(.*) ${rest}$`)],
    [20, /^….* 12 s left$/]
  ] as const) {
    const drawn = lineOf(HALF, columns)
    t.match(drawn, line)
    t.ok(drawn.length < columns, `${columns} columns hold it`)
  }
  t.equal(lineOf({ label: 'cleaning', details: ['1 of 3'] }, 80), 'cleaning | 1 of 3')
})

test('a terminal gets bars that are cleared at the end', async (t) => {
  const { display, text } = shownOn({ isTTY: true, columns: 80 })
  display.update(HALF)
  display.stop()
  t.match(text(), new RegExp(`${CLEAR}title-count-hour █+░+ 50 % .* 12 s left${CLEAR}$`))
})

test('elsewhere lines are printed every five seconds, and of work without a share one per label', async (t) => {
  let nowMs = 0
  const { display, text } = shownOn({ isTTY: false }, () => nowMs)
  for (let second = 0; second < 12; second += 1) {
    display.update({ ...HALF, share: second / 12, line: 'a' })
    display.update({ label: second < 6 ? 'destroying the key' : 'cleaning the tables', line: 'b' })
    nowMs += 1000
  }
  t.equal(
    text(),
    [
      'destroying the key',
      'title-count-hour: 41 %, 165346 events/s, 12 s left',
      'cleaning the tables',
      'title-count-hour: 83 %, 165346 events/s, 12 s left',
      ''
    ].join('\n')
  )
})

const CLEAR = '\r\u001b\\[J'

function shownOn(features: { isTTY: boolean; columns?: number }, now?: () => number) {
  const errors = Object.assign(new PassThrough({ encoding: 'utf8' }), features)
  const display = showProgress({ errors: errors as unknown as WriteStream }, true, now)
  return { display, text: () => String(errors.read() ?? '') }
}
