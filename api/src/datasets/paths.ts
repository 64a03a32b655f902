export const DATASETS_PATH = '/api/data'
export const DATASET_FILE_PATH = '/api/data/:dataset/:file'
export const PARQUET = 'application/vnd.apache.parquet'

export const EXCLUDED =
  'Presence, profiles, ratings and unlocks are in no dataset: they are data of people, who can have them erased.'
