import { errorMessage, Failure } from '@gamenet/schemas'

/** Returns the failure of an import that cannot start, before anything is published. */
export function importRefused(message: string, options?: ErrorOptions): Failure {
  return new Failure('import_refused', message, options)
}

/** Returns the failure of an interrupted import. */
export function importCutOff(file: string, rowsRead: number, cause: unknown): Failure {
  const message =
    `The import of ${file} was interrupted after ${rowsRead} rows: ${errorMessage(cause).replace(/\.$/, '')}. ` +
    'Published events stay; run the same import again to resume'
  return new Failure('import_cut_off', message, { cause })
}
