import type { HourMatrix } from '@gamenet/schemas'
import { Heat } from './heat.js'
import { type Column, Table } from './table.js'
import { count, WEEKDAYS } from './text.js'

/** Weeks of data that a best hour needs. */
export const WEEKS_MIN = 2
/** Length of the window that is named as the best time, in hours. */
const BEST_HOURS = 2
const SHADES = 5

/** The best time to play: the pair of hours with the highest mean. */
export function bestHours(hours: HourMatrix | undefined) {
  const enough = (hours ?? []).filter(({ weeks }) => weeks >= WEEKS_MIN)
  const at = new Map(enough.map((hour) => [hour.weekday * 24 + hour.hour, hour.average]))
  const windows = enough.flatMap(({ weekday, hour, average }) => {
    const next = at.get(weekday * 24 + hour + 1)
    return hour === 23 || next === undefined ? [] : [{ weekday, hour, average: (average + next) / BEST_HOURS }]
  })
  if (windows.length === 0) return undefined
  const { weekday, hour, average } = windows.reduce((best, each) => (each.average > best.average ? each : best))
  return { day: WEEKDAYS[weekday - 1] ?? '', text: `${hour}–${hour + BEST_HOURS} h`, average }
}

/** The hours of the week as a heat map, and as a table. */
export function Hours({ hours, zone }: { hours: HourMatrix; zone: string }) {
  const averages = hours.map(({ average }) => average)
  const [low, high] = [Math.min(...averages), Math.max(...averages)]
  const shadeOf = (average: number) =>
    high === low ? SHADES : 1 + Math.min(SHADES - 1, Math.floor(((average - low) / (high - low)) * SHADES))
  const label = `Players by hour of the week, ${zone}`
  const at = new Map(hours.map((each) => [each.weekday * 24 + each.hour, each.average]))
  return (
    <>
      <Heat
        label={label}
        width={264}
        height={112}
        size={[10, 14]}
        cells={hours.map(({ weekday, hour, average }) => ({
          x: 20 + hour * 10,
          y: (weekday - 1) * 14,
          shade: shadeOf(average),
          title: `${WEEKDAYS[weekday - 1]} ${hour}:00, about ${count(average)}`
        }))}
      >
        {WEEKDAYS.map((day, index) => (
          <text key={day} class="tick" x="0" y={index * 14 + 11}>
            {day.slice(0, 2)}
          </text>
        ))}
        {[0, 6, 12, 18].map((hour) => (
          <text key={hour} class="tick" x={20 + hour * 10} y="110">
            {hour} h
          </text>
        ))}
      </Heat>
      <details>
        <summary>As a table</summary>
        <Table
          label={label}
          rows={Array.from({ length: 24 }, (_, hour) => hour)}
          columns={[
            ['Hour', (hour) => hour],
            ...WEEKDAYS.map(
              (day, index): Column<number> => [
                `#${day.slice(0, 2)}`,
                (hour) => {
                  const average = at.get((index + 1) * 24 + hour)
                  return average === undefined ? '–' : count(average)
                }
              ]
            )
          ]}
        />
      </details>
    </>
  )
}
