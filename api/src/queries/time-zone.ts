/** Names of zones; not offsets such as `+05:30` or old names such as `SystemV/AST4`, which the engine lacks. */
const ZONE_NAME = /^(?!SystemV\/)[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/i
/** Counts of networks are not older. */
const FIRST_MS = Date.UTC(1990, 0, 1)
const END_MS = Date.UTC(2106, 0, 1)
/** No zone keeps an offset for less than a week. */
const STEP_MS = 7 * 86_400_000
const DAY_MS = 86_400_000

/** Returns the canonical name of an IANA time zone in any case; undefined for anything else. */
export function zoneNamed(name: string): string | undefined {
  if (!ZONE_NAME.test(name)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** Returns whether all days of a zone begin with an hour of UTC. The first call for a zone takes 30 ms. */
export function hasWholeHours(tz: string): boolean {
  const known = wholeHours.get(tz)
  if (known !== undefined) return known
  const offset = offsetIn(tz)
  let isWhole = true
  for (let ms = FIRST_MS; isWhole && ms < END_MS; ms += STEP_MS) isWhole = offset(ms) % 60 === 0
  wholeHours.set(tz, isWhole)
  return isWhole
}

/** By zone; there are some hundred zones. */
const wholeHours = new Map<string, boolean>([['UTC', true]])

/** Returns the date of an instant in a zone, `YYYY-MM-DD`. */
export function dateIn(tz: string, ms: number): string {
  return new Date(ms + offsetIn(tz)(ms) * 60_000).toISOString().slice(0, 10)
}

/** Returns the first instant of a day in a zone, milliseconds since 1970: not midnight where the clock skips it. */
export function startOfDay(tz: string, day: string): number {
  const offset = offsetIn(tz)
  const noon = Date.parse(`${day}T12:00:00Z`)
  let [before, within] = [noon - 2 * DAY_MS, noon + DAY_MS]
  while (within - before > 1) {
    const middle = Math.floor((before + within) / 2)
    const isBefore = new Date(middle + offset(middle) * 60_000).toISOString().slice(0, 10) < day
    ;[before, within] = isBefore ? [middle, within] : [before, middle]
  }
  return within
}

/** Returns the function of an instant to the zone's offset in minutes. */
export function offsetIn(tz: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone: tz, timeZoneName: 'longOffset' })
  return (ms) => {
    const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours, minutes] = /GMT([+-])(\d{2}):(\d{2})/.exec(name) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0))
  }
}
