import type { DatasetList } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about datasets. */
export function datasetsMethods(get: Get) {
  return {
    /** The datasets, their columns, and their files with addresses and hashes. */
    getDatasets: (call?: CallOptions) => get<DatasetList>('/api/data', {}, call)
  }
}
