/** Structured log of the program; pino and Fastify's logger fit. */
export type Logger = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
