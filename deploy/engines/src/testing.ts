export { type FrontProcess, startClickHouseFront } from './clickhouse-front/start.js'
export { type PostgresProcess, postgresPrograms, startPostgres } from './postgres/start.js'
