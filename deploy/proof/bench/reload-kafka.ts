import { randomUUID } from 'node:crypto'
import type { ClickHouse } from '@gamenet/engines'
import { kafkaBrokerMissing, startKafkaBroker } from '@gamenet/engines/testing'
import type { LogChoice } from '../../src/stores/log.js'
import { fillWithCounts, rateInto } from './count-log.js'
import { CannotMeasure, figure, type Measurement, quantile, scaled } from './measurement.js'
import { withReloads } from './reload.js'

const EVENTS = 2_000_000
const PARTITIONS = 4
const ROUNDS = 3
/** Rows per insert, as in our loader. */
const BLOCK_ROWS = 65_536
/** The default, 7.5 s, would delay the last block, which is not full. */
const FLUSH_MS = 500

/** Reloads an event table from Kafka, alternating with ClickHouse's own Kafka engine: one broker, one topic, one process. */
export const reloadKafka: Measurement = {
  name: 'reload-kafka',
  claim:
    "event tables are reloaded from Kafka, every event validated, as fast as by ClickHouse's own Kafka engine in chDB",
  async run(conditions) {
    const { scale, note } = conditions
    const missing = await kafkaBrokerMissing()
    if (missing !== undefined) throw new CannotMeasure(`${missing}.`)
    const broker = await startKafkaBroker({ measured: true })
    try {
      const choice: LogChoice = {
        engine: 'kafka',
        brokers: [broker.address],
        topicPrefix: 'bench.',
        partitions: PARTITIONS,
        replicationFactor: 1,
        epoch: 1
      }
      const events = await fillWithCounts(choice, scaled(EVENTS, scale, 50_000))
      note(`${events} events are in Kafka, ${PARTITIONS} partitions`)
      return await withReloads(conditions, choice, events, async ({ tables, live, reloadedPerSecond }) => {
        const ours: number[] = []
        const theirs: number[] = []
        for (let round = 0; round < ROUNDS; round += 1) {
          ours.push(await reloadedPerSecond())
          theirs.push(await loadedByTheirs(tables, broker.address, events))
          note(`ours ${figure(ours.at(-1) ?? 0)}/s, ClickHouse's own ${figure(theirs.at(-1) ?? 0)}/s`)
        }
        return [
          {
            what: 'events a second, first insert to last',
            measured: quantile(ours, 0.5),
            unit: '/s',
            baseline: { what: "ClickHouse's own", measured: quantile(theirs, 0.5) },
            target: { bound: 'at least', value: 1, of: 'ratio' },
            detail: `medians of ${ROUNDS} alternating rounds; best ${figure(Math.max(...ours))} and ${figure(Math.max(...theirs))}; the first load, with its projections, ${figure(live)}/s`
          }
        ]
      })
    } finally {
      await broker.stop()
    }
  }
}

/**
 * Loads through a Kafka table and a materialized view into a table with the columns and key of the event table. Nothing is
 * validated: a message that is not JSON stops it, and numbers out of range are stored changed.
 */
async function loadedByTheirs(tables: ClickHouse, address: string, events: number): Promise<number> {
  const { control } = tables
  await control.execute('CREATE TABLE theirs AS event_title_count__0')
  await control.execute(`
    CREATE TABLE theirs_in (
      titleId String, observedAt String, online UInt32, sessions Nullable(UInt32), lobbyPlayers Nullable(UInt32)
    ) ENGINE = Kafka SETTINGS kafka_broker_list = '${address}', kafka_topic_list = 'bench.title-count',
      kafka_group_name = 'theirs-${randomUUID()}', kafka_format = 'JSONEachRow', kafka_num_consumers = 1,
      kafka_max_block_size = ${BLOCK_ROWS}, kafka_poll_max_batch_size = ${BLOCK_ROWS},
      kafka_flush_interval_ms = ${FLUSH_MS}`)
  await control.execute(`
    CREATE MATERIALIZED VIEW theirs_view TO theirs AS
    SELECT 1 AS epoch, _partition AS partition, _offset AS offset,
      _headers.value[indexOf(_headers.name, 'ce_source')] AS source,
      _headers.value[indexOf(_headers.name, 'ce_importid')] AS import_id,
      parseDateTime64BestEffort(observedAt, 3, 'UTC') AS observed_at,
      titleId AS title_id, online, sessions, lobbyPlayers AS lobby_players
    FROM theirs_in`)
  try {
    return await rateInto(tables, 'theirs', events)
  } finally {
    await control.execute('DROP TABLE theirs_view SYNC')
    await control.execute('DROP TABLE theirs_in SYNC')
    await control.execute('DROP TABLE theirs SYNC')
  }
}
