/** The server's HTTP statuses by error code; 500 for all others. */
const CODES_BY_STATUS: Readonly<Record<number, readonly number[]>> = {
  // Cannot parse (6, 26, 27, 38, 41, 72, 117, 441), illegal types and arguments (36, 42, 43, 53), syntax (62),
  // duplicate names and columns (15, 44), a query too big (229), a parameter that is not set or malformed (456, 457).
  400: [6, 15, 20, 26, 27, 36, 38, 41, 42, 43, 44, 53, 62, 72, 117, 229, 441, 456, 457],
  401: [194],
  403: [164, 192, 193, 497, 516],
  // Unknown column, identifier, function, table, database, setting, format and others.
  404: [16, 46, 47, 50, 56, 60, 63, 73, 81, 115],
  408: [159],
  501: [48],
  503: [76, 202, 209, 210]
}

const STATUS_BY_CODE = new Map(
  Object.entries(CODES_BY_STATUS).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)] as const))
)

export const statusOf = (code: number): number => STATUS_BY_CODE.get(code) ?? 500
