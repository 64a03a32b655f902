import { errorMessage } from '@gamenet/schemas'

/**
 * An import that cannot start. The message says what was found, what was expected and what to do. Nothing has been
 * published.
 */
export class ImportRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImportRefused'
  }
}

/** An interrupted import. Published events stay; the same import, run again, continues after them. */
export class ImportCutOff extends Error {
  /** The file's name as the user gave it. */
  readonly file: string
  readonly rowsRead: number
  /** Events passed to the log; the last append may have failed. */
  readonly published: number

  constructor(file: string, counts: { readonly rowsRead: number; readonly published: number }, cause: unknown) {
    const reason = errorMessage(cause).replace(/\.$/, '')
    super(
      `The import of ${file} was interrupted after ${counts.rowsRead} rows: ${reason}. ` +
        'Published events stay; run the same import again to resume',
      { cause }
    )
    this.name = 'ImportCutOff'
    this.file = file
    this.rowsRead = counts.rowsRead
    this.published = counts.published
  }
}
