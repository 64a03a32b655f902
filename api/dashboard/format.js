const whole = new Intl.NumberFormat('en')

/**
 * A count with separators; a dash for an unknown one.
 * @param {number | null | undefined} value
 */
export function count(value) {
  return value === undefined || value === null ? '—' : whole.format(value)
}

/**
 * `count` with its noun: `1 gap`, `2 gaps`, `2 entries`.
 * @param {number} value
 * @param {string} noun
 */
export function counted(value, noun, nouns = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : nouns}`
}

/**
 * An instant (milliseconds since 1970) as `2026-03-14 20:31 UTC`, with seconds where they are not 0.
 * @param {number} ms
 */
export function instant(ms) {
  const text = new Date(ms).toISOString()
  const end = text.slice(17, 19) === '00' ? 16 : 19
  return `${text.slice(0, end).replace('T', ' ')} UTC`
}

/**
 * A lap time (milliseconds) as boards show it: `1:02.345`.
 * @param {number} ms
 */
export function time(ms) {
  const seconds = ((ms % 60_000) / 1000).toFixed(3).padStart(6, '0')
  return `${Math.floor(ms / 60_000)}:${seconds}`
}

/**
 * A duration (milliseconds) in its largest fitting unit: `40 s`, `3 min`, `2 h`, `5 d`.
 * @param {number} ms
 */
export function length(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 100) return `${seconds} s`
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

/**
 * The width of a bucket (seconds) in words.
 * @param {number} seconds
 */
export function width(seconds) {
  /** @type {[number, string][]} */
  const units = [
    [604_800, 'week'],
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute']
  ]
  for (const [size, unit] of units) {
    if (seconds % size === 0) return seconds === size ? unit : `${seconds / size} ${unit}s`
  }
  return `${seconds} seconds`
}
