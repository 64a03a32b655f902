/** The weight, 0 to 1, of each alternative of an `Accept` header (RFC 9110, 12.4.2) by its name in lower case. */
export function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';')
    weights.set(name.trim().toLowerCase(), weightOf(parameters))
  }
  return weights
}

function weightOf(parameters: readonly string[]): number {
  for (const parameter of parameters) {
    const match = /^\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*$/i.exec(parameter)
    if (match !== null) return Number(match[1])
    if (/^\s*q\s*=/i.test(parameter)) return 0
  }
  return 1
}
