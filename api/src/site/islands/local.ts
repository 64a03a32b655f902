import { buttonOf, keep, kept } from './service.js'

const numbers = new Intl.NumberFormat()
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const SECOND_MS = 1000
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60]
] as const
/** Ages are written again this often. */
const AGES_MS = 30_000

let usesUtc = kept<string>('zone', '') === 'utc'
let instants = instantFormats()

/** Writes times in the reader's zone, numbers and dates in the reader's language, and ages. */
export function showLocal(): void {
  for (const element of document.querySelectorAll<HTMLDataElement>('main data[value]')) {
    element.textContent = countText(Number(element.value))
  }
  showTimes()
  dispatchEvent(new Event('shown'))
}

/** Does so now, again as ages grow, and when the reader chooses a zone. */
export function followLocal(): void {
  showLocal()
  setInterval(() => showTimes('time[data-form=ago]'), AGES_MS)
  const zone = document.getElementById('zone')
  if (zone === null) return
  const button = buttonOf('', () => {
    usesUtc = !usesUtc
    keep('zone', usesUtc ? 'utc' : 'local')
    instants = instantFormats()
    show()
    showTimes()
  })
  const show = (): void => {
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone
    zone.textContent = usesUtc
      ? 'Times are UTC. '
      : `Times are yours (${name.split('/').at(-1)?.replaceAll('_', ' ')}). `
    button.textContent = usesUtc ? 'Show my zone' : 'Show UTC'
    zone.append(button)
  }
  show()
}

/** Returns a number in the reader's language. */
export const countText = (value: number): string => numbers.format(Math.round(value))

/** Returns an instant in the chosen zone. */
export const instantText = (ms: number): string => instants.instant.format(ms)

function showTimes(selector = 'main time[data-form]'): void {
  for (const element of document.querySelectorAll<HTMLTimeElement>(selector)) {
    const ms = Date.parse(element.dateTime)
    const form = element.dataset.form as keyof typeof instants | 'ago'
    element.textContent = form === 'ago' ? agoText(ms) : instants[form].format(ms)
    if (form !== 'instant') element.title = instantText(ms)
  }
}

/** Returns an age: `2 min ago`; a date when it is more than 30 days old. */
function agoText(ms: number): string {
  const seconds = (Date.now() - ms) / SECOND_MS
  if (seconds > 30 * 86_400) return instants.day.format(ms)
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(-Math.floor(seconds / length), unit)
  }
  return relative.format(-Math.max(0, Math.floor(seconds)), 'second')
}

function instantFormats() {
  const zone = usesUtc ? { timeZone: 'UTC' } : {}
  const day = { day: 'numeric', month: 'short', year: 'numeric', ...zone } as const
  const tick = { day: 'numeric', month: 'short', hour: 'numeric', minute: 'numeric', ...zone } as const
  return {
    // Days of answers are days of UTC.
    day: new Intl.DateTimeFormat(undefined, day),
    tick: new Intl.DateTimeFormat(undefined, tick),
    // The last of an axis names the zone.
    'last-day': new Intl.DateTimeFormat(undefined, { ...day, timeZoneName: 'short' }),
    'last-tick': new Intl.DateTimeFormat(undefined, { ...tick, timeZoneName: 'short' }),
    instant: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', ...zone })
  }
}
