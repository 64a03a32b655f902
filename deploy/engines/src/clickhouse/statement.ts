import { ClickHouseError, type LaneName } from './clickhouse.js'

/** Limits of one statement of a lane. */
export type LaneLimits = {
  readonly seconds: number
  readonly memoryBytes: number
  readonly threads: number
}

const MIB = 1024 * 1024

/** Sized for two cores and 4 GiB. */
export const LANE_LIMITS: { readonly [name in LaneName]: LaneLimits } = {
  loader: { seconds: 300, memoryBytes: 1536 * MIB, threads: 2 },
  projections: { seconds: 900, memoryBytes: 1536 * MIB, threads: 2 },
  rebuild: { seconds: 6 * 3600, memoryBytes: 1536 * MIB, threads: 1 },
  readers: { seconds: 30, memoryBytes: 512 * MIB, threads: 2 },
  exports: { seconds: 600, memoryBytes: 384 * MIB, threads: 1 },
  control: { seconds: 30, memoryBytes: 256 * MIB, threads: 1 }
}

/**
 * Connections of a lane; default: one. Each stream has one thread: answers wait less. One statement of a rebuild reads
 * keys while another stores rows.
 */
const CONNECTIONS: Partial<Record<LaneName, number>> = { exports: 3, rebuild: 2, control: 2 }
/**
 * Maximum number of waiting statements. An answer takes up to four reads, so this serves about 250 simultaneous callers
 * with different queries; the last one waits a few seconds. Serial lanes serve callers that await each answer: there a
 * longer queue indicates an endless loop.
 */
const QUEUE_MAX = 1024
/** Waiting streams. Their readers take all of them at once, so that none waits for a client. */
const EXPORTS_QUEUE = { queueMax: 64, retryAfterSeconds: 5 }
const BUSY_RETRY_SECONDS = 1

/** Returns the number of connections of a lane, and what happens to statements beyond them. */
export const laneSize = (
  name: LaneName,
  { readers, queueMax = QUEUE_MAX }: { readonly readers: number; readonly queueMax?: number | undefined }
): { readonly slots: number; readonly queueMax: number; readonly retryAfterSeconds: number } => ({
  slots: name === 'readers' ? readers : (CONNECTIONS[name] ?? 1),
  ...(name === 'exports'
    ? EXPORTS_QUEUE
    : { queueMax: name === 'readers' ? queueMax : QUEUE_MAX, retryAfterSeconds: BUSY_RETRY_SECONDS })
})

/**
 * A body of rows is a bounded batch, stored within seconds. Repeating a slow one is better than waiting as long as for
 * a lane's longest statement, because its sender holds locks.
 */
const BODY_SECONDS_MAX = 120

/** Returns the limits of an insert with a body of rows. */
export const bodyLimits = (limits: LaneLimits): LaneLimits => ({
  ...limits,
  seconds: Math.min(limits.seconds, BODY_SECONDS_MAX)
})

export type Settings = Readonly<Record<string, string | number>>

/**
 * An expression is compiled at its thousandth use, by default at its third. Compiling takes 20 ms of processor time,
 * as much as ten statements of the projector: a service that only starts compiled 24, and ran one of them.
 */
const COMPILE_SETTINGS: Settings = {
  min_count_to_compile_expression: 1000,
  min_count_to_compile_aggregate_expression: 1000,
  min_count_to_compile_sort_description: 1000
}

/** Returns the limits of a lane as settings of each statement. */
export const limitSettings = (limits: LaneLimits): Settings => ({
  max_execution_time: limits.seconds,
  max_memory_usage: limits.memoryBytes,
  max_threads: limits.threads,
  ...COMPILE_SETTINGS
})

/** Returns the lower of the lane's limits and the statement's own. */
export const lowerLimits = (limits: LaneLimits, own: Pick<LaneLimits, 'seconds' | 'memoryBytes'>): LaneLimits => ({
  ...limits,
  seconds: Math.min(limits.seconds, own.seconds),
  memoryBytes: Math.min(limits.memoryBytes, own.memoryBytes)
})

/** Settings of answers: one JSON array of rows; wide integers are quoted so that JSON.parse keeps them exact. */
export const ANSWER_SETTINGS: Settings = {
  output_format_json_array_of_rows: 1,
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
  output_format_json_quote_denormals: 0,
  // CHECK TABLE reports every part.
  check_query_single_value_result: 0
}

/**
 * Settings of writes: synchronous, not in the background; without deduplication, because our keys deduplicate; and in
 * one block, so that an insert is stored whole or not at all, whatever number of partitions it touches.
 */
export const WRITE_SETTINGS: Settings = {
  async_insert: 0,
  insert_deduplicate: 0,
  deduplicate_insert: 'disable',
  deduplicate_insert_select: 'disable',
  max_partitions_per_insert_block: 0,
  max_insert_block_size: 4_194_304,
  min_insert_block_size_rows: 4_194_304,
  min_insert_block_size_bytes: 0
}

/**
 * Settings of inserts into tables with replicas: a majority has stored what is acknowledged, so that the death of one
 * loses nothing. An insert that fails may be repeated, because our keys deduplicate.
 */
export const QUORUM_SETTINGS: Settings = { insert_quorum: 'auto', insert_quorum_timeout: 60_000 }

/**
 * Settings of other statements on such tables: DDL does not wait for a replica that is away; a deletion waits for the
 * others.
 */
export const REPLICATED_SETTINGS: Settings = {
  distributed_ddl_output_mode: 'none_only_active',
  mutations_sync: 2,
  lightweight_deletes_sync: 2
}

/** Settings of reads on replicas: a list of all of them lacks one that is away. */
export const REPLICA_READ_SETTINGS: Settings = { skip_unavailable_shards: 1 }

/** Settings of reads where servers share their tables (ClickHouse Cloud): they stand for the barrier. */
export const SHARED_READ_SETTINGS: Settings = { select_sequential_consistency: 1 }

/**
 * Settings of streams: instants in ISO form, missing values of CSV as empty cells, integers of NDJSON as numbers, and
 * blocks and row groups that keep the memory of a stream below 64 MiB: 262,144 rows, and blocks that are read ahead,
 * took 145 MiB.
 */
export const STREAM_SETTINGS: Settings = {
  date_time_output_format: 'iso',
  date_time_input_format: 'best_effort',
  format_csv_null_representation: '',
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_denormals: 0,
  // Files are sorted, so that bloom filters, which take 0.4 bytes a sample, exclude no row group.
  output_format_parquet_row_group_size: 65_536,
  output_format_parquet_write_bloom_filter: 0,
  output_format_parquet_parallel_encoding: 0,
  output_format_parallel_formatting: 0,
  read_in_order_use_buffering: 0
}

/**
 * Settings of bodies: a row that does not fit its columns is an error of the whole body; a column of another type is,
 * too.
 */
export const BODY_SETTINGS: Settings = {
  input_format_null_as_default: 0,
  input_format_native_allow_types_conversion: 0,
  input_format_allow_errors_num: 0,
  input_format_allow_errors_ratio: 0
}

/** Names of all settings of statements; each engine is asked once which of them it supports. */
export const ALL_SETTING_NAMES: readonly string[] = [
  limitSettings(LANE_LIMITS.control),
  ...[ANSWER_SETTINGS, STREAM_SETTINGS, WRITE_SETTINGS, BODY_SETTINGS, QUORUM_SETTINGS],
  ...[REPLICA_READ_SETTINGS, SHARED_READ_SETTINGS]
].flatMap((settings) => Object.keys(settings))

/** Returns the settings that the engine's version supports. */
export const knownOf = (settings: Settings, known: ReadonlySet<string>): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => known.has(name)))

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/

/** Checks names that become text of an INSERT, although they come from our own code. */
export const checkNames = (table: string, columns: readonly string[]): void => {
  for (const name of [table, ...columns]) {
    if (!IDENTIFIER.test(name))
      throw new ClickHouseError(`${JSON.stringify(name)} is not a plain name of a table or column.`)
  }
  if (columns.length === 0) throw new ClickHouseError(`An insert into ${table} names no columns.`)
}

/** Returns the head of an INSERT whose rows follow as a body. */
export const insertHead = (table: string, columns: readonly string[], format: string): string => {
  checkNames(table, columns)
  return `INSERT INTO ${table} (${columns.join(', ')}) FORMAT ${format}`
}

/** Returns the engine's array of rows without surrounding line breaks; `[]` for no rows. */
export const jsonArray = (bytes: Uint8Array): Uint8Array => {
  const end = bytes.lastIndexOf(CLOSING_BRACKET)
  if (bytes[0] !== OPENING_BRACKET || end < 0) {
    throw new ClickHouseError(`The answer is truncated: its ${bytes.length} bytes are not a complete JSON array.`)
  }
  return end <= '[\n\n'.length ? EMPTY_ARRAY : bytes.subarray(0, end + 1)
}

const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const EMPTY_ARRAY = new TextEncoder().encode('[]')

/** Parses the rows of a JSON array of objects. */
export const parseRows = (bytes: Uint8Array): Record<string, unknown>[] =>
  JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>[]
