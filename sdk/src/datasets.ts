import type { CallOptions, Open } from './request.js'

/** A file of a dataset, and which of its bytes. */
export type DatasetFileParameters = {
  readonly dataset: string
  /** A month (UTC), `2025-03`, or `newest`, as the list has it. */
  readonly period: string
  /**
   * Of a revision in the list: exactly these bytes, or 404 once they are no longer kept. Default: the newest revision.
   */
  readonly sha256?: string | undefined
  /** The first and the last byte, from 0. Default: from the beginning, to the end. */
  readonly firstByte?: number | undefined
  readonly lastByte?: number | undefined
}

const DIGEST_CHARACTERS = 16

/** The method for files of datasets. */
export function datasetFileMethod(open: Open) {
  return {
    /**
     * The bytes of a Parquet file, as they arrive. The time limit is for the headers; the signal also ends the stream.
     * A connection that breaks off makes the stream fail.
     */
    getDatasetFile: async (
      { dataset, period, sha256, firstByte, lastByte }: DatasetFileParameters,
      call: Pick<CallOptions, 'signal'> = {}
    ): Promise<ReadableStream<Uint8Array>> => {
      const digest = sha256 === undefined ? '' : `.${sha256.slice(0, DIGEST_CHARACTERS)}`
      const isPart = firstByte !== undefined || lastByte !== undefined
      const range = isPart ? { Range: `bytes=${firstByte ?? 0}-${lastByte ?? ''}` } : {}
      const file = `${period}${digest}.parquet`
      const { body } = await open('/api/data/:dataset/:file', { dataset, file }, range, call.signal)
      return body ?? new ReadableStream({ start: (controller) => controller.close() })
    }
  }
}
