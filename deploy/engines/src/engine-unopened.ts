/**
 * An embedded engine that cannot open its files: they are damaged, or of another kind. The message is a sentence
 * without its end.
 */
export class EngineUnopened extends Error {
  constructor(
    readonly engine: 'log' | 'tables' | 'writes',
    message: string,
    options?: ErrorOptions
  ) {
    super(message, options)
  }
}
