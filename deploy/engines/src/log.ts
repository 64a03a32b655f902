/*
 * The logs, for threads that need no tables.
 */
export type { BatchExtent, CheckedEvents, LogFault } from './log/check-batches.js'
export { type EmbeddedLog, openEmbeddedLog } from './log/embedded-log.js'
export { isOfLmdbDamage, LogDamaged } from './log/embedded-store.js'
export type { KafkaLogOptions } from './log/kafka-admin.js'
export type { KafkaSasl } from './log/kafka-client.js'
export { type KafkaLog, openKafkaLog } from './log/kafka-log.js'
export { readLogApart } from './log/read-apart.js'
export { openSpool, type Parcel, type Spool, type SpoolState } from './log/spool.js'
export type { StoredRecords } from './log/stored-records.js'
