const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Returns bytes for people to read, in steps of a thousand and with three digits: `1.5 GB`. */
export function bytesText(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, Math.abs(bytes))) / 3)))
  const amount = bytes / 1000 ** step
  return `${step === 0 ? Math.round(amount) : Number(amount.toPrecision(3))} ${UNITS[step]}`
}
