import { PassThrough } from 'node:stream'
import cliProgress from 'cli-progress'
import { test } from 'tap'
import { barFormat } from '../src/commands/bar-format.js'

const ESCAPE = '\u001b'

test('a bar leaves room for the percentage and the time that is left, however narrow the terminal is', async (t) => {
  const rest = '50 % | 165346 events/s | 12 s left'
  for (const [columns, line] of [
    [200, new RegExp(`^title-count-hour █{20}░{20} ${rest}$`)],
    [80, new RegExp(`^title-count-hour █{14}░{13} ${rest}$`)],
    [53, new RegExp(`^title-count-hour  ${rest}$`)],
    [40, new RegExp(`^…(.*) ${rest}$`)],
    [20, /^….* 12 s left$/]
  ] as const) {
    const drawn = lineOn(columns)
    t.match(drawn, line)
    t.ok(drawn.length < columns, `${columns} columns hold it`)
  }
})

/** What stands on a terminal of so many columns. */
function lineOn(columns: number): string {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns })
  const format = barFormat('{table} {bar} {percentage} % | {rate} | {left} left')
  const bar = new cliProgress.SingleBar({ format, stream }, cliProgress.Presets.shades_classic)
  bar.start(2, 1, { table: 'title-count-hour', rate: '165346 events/s', left: '12 s' })
  bar.stop()
  // Behind the first move of the cursor, up to what clears the rest of its line.
  const [, line = ''] = String(stream.read()).split(`${ESCAPE}[1G`)
  return line.split(ESCAPE)[0] ?? ''
}
