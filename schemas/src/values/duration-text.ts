/**
 * Returns seconds for people to read, in the unit that suits their length: `45 s`, `12 min`, `3 h 5 min`; at least
 * `1 s`.
 */
export function durationText(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  if (whole < 120) return `${whole} s`
  const minutes = Math.round(whole / 60)
  if (minutes < 120) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
