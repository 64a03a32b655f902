import type { HourMatrix } from '@gamenet/schemas'
import { Scroll } from './marks.js'
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
  return (
    <>
      <svg class="heat" viewBox="0 0 264 112" role="img" aria-label={`Players by hour of the week, ${zone}`}>
        {WEEKDAYS.map((day, index) => (
          <text key={day} class="tick" x="0" y={index * 14 + 11}>
            {day.slice(0, 2)}
          </text>
        ))}
        {hours.map(({ weekday, hour, average }) => (
          <rect
            key={weekday * 24 + hour}
            class={`shade-${shadeOf(average)}`}
            x={20 + hour * 10}
            y={(weekday - 1) * 14}
            width="9"
            height="13"
          >
            <title>{`${WEEKDAYS[weekday - 1]} ${hour}:00, about ${count(average)}`}</title>
          </rect>
        ))}
        {[0, 6, 12, 18].map((hour) => (
          <text key={hour} class="tick" x={20 + hour * 10} y="110">
            {hour} h
          </text>
        ))}
      </svg>
      <details>
        <summary>As a table</summary>
        <Scroll label="Players by hour of the week">
          <table class="dense">
            <thead>
              <tr>
                <th scope="col">Hour</th>
                {WEEKDAYS.map((day) => (
                  <th key={day} scope="col" class="number">
                    {day.slice(0, 2)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {Array.from({ length: 24 }, (_, hour) => (
                <tr key={hour}>
                  <th scope="row">{hour}</th>
                  {WEEKDAYS.map((day, index) => {
                    const cell = hours.find((each) => each.weekday === index + 1 && each.hour === hour)
                    return (
                      <td key={day} class="number">
                        {cell === undefined ? '–' : count(cell.average)}
                      </td>
                    )
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  )
}
