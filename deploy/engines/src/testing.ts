export { type FrontProcess, startClickHouseFront } from './clickhouse-front/start.js'
export { freePort } from './free-port.js'
export { type KafkaBroker, kafkaBrokerMissing, startKafkaBroker } from './log/kafka-broker.js'
export { type PostgresProcess, postgresPrograms, startPostgres } from './postgres/start.js'
