export { type Certificate, selfSigned } from './certificate.js'
export { ALL_RIGHTS, type ClickHouseServer, clickHouseUrl, startClickHouseServer } from './clickhouse-server.js'
export { freePort } from './free-port.js'
export { type KafkaBroker, kafkaBrokerMissing, startKafkaBroker } from './kafka-broker.js'
export { listening } from './listening.js'
export {
  type BoardReign,
  boardOf,
  changesOf,
  type EntryChange,
  type EntryEvent,
  historyOf,
  newestOf,
  type RankedEntry,
  recordedOf,
  recordsOf
} from './oracle/boards.js'
export { newestSamples, type Rollup, rollupsOf, type Sample } from './oracle/counts.js'
export { matchesOf, newestLists, type PlainList, type PlainMatch } from './oracle/matches.js'
export { OTHER_USER, runAsOther } from './other-user.js'
export { type PostgresProcess, postgresPrograms, startPostgres } from './postgres.js'
export { beginCampaign, runs } from './property-runs.js'
export { recording } from './recording.js'
export {
  createReplicated,
  killsMissing,
  replicaCommands,
  replicasMissing,
  replicatedDatabase,
  replicaUrls
} from './replicas.js'
export { type SharedKafka, sharedClickHouse, sharedKafka, sharedPostgres } from './shared/shared.js'
export { signalEntries } from './signal-entries.js'
export { smallDisk } from './small-disk.js'
export { until } from './until.js'
export { startWire, type Wire } from './wire.js'
