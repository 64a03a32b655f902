/** What the projector tells while it runs; pino and Fastify's loggers are such. */
export type Logger = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
