import type { Components, Json } from '../answers/components.js'
import { DatasetList } from '../datasets/manifest.js'
import { EXCLUDED } from '../datasets/paths.js'
import { exampleOf } from './example.js'
import { refused } from './refused.js'

export const DATASETS_TAG = 'Datasets'

/**
 * Returns the operation that lists datasets. It is not an endpoint: its answer depends on files and has no data
 * version.
 */
export function datasetsOperation(components: Components): Json {
  const schema = components.schema(DatasetList, 'output', 'DatasetList')
  return {
    operationId: 'getDatasets',
    tags: [DATASETS_TAG],
    summary: 'The datasets, their columns and files',
    description:
      'A file is Parquet, with a strong ETag, and answers `Range`, `If-Range` and all conditions of RFC 9110. That ' +
      'of a closed month is kept and served as it is; late events make a new revision. That of an open month is at ' +
      'most 10 minutes old. Files of closed months that are missing are made soon after this answer, or when they ' +
      `are requested. ${EXCLUDED}`,
    security: [],
    responses: {
      200: {
        description: 'The datasets and their files.',
        headers: { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } },
        content: { 'application/json': { schema, example: exampleOf(schema, components) } }
      },
      ...refused(['uri_too_long', 'internal', 'engine_busy', 'engine_away', 'data_damaged'], components)
    }
  }
}
