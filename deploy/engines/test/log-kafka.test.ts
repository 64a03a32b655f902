import { randomUUID } from 'node:crypto'
import { openKafkaLog } from '@gamenet/engines'
import { kafkaBrokerMissing, startKafkaBroker } from '@gamenet/engines/testing'
import { after, test } from 'tap'
import { testLog } from './log-contract.js'

const missing = await kafkaBrokerMissing()

if (missing !== undefined) {
  void test('the contract of logs on a real Kafka', async (t) => {
    if (process.env.CI === 'true') t.fail(missing)
    else t.pass(`SKIPPED, NOTHING OF KAFKA WAS TESTED: ${missing}`, { skip: missing })
  })
} else {
  const broker = await startKafkaBroker()
  after(() => broker.stop())

  testLog({
    name: 'Kafka log',
    runs: 5,
    async place(t) {
      const topicPrefix = `${randomUUID()}.`
      const groupId = randomUUID()
      return {
        async open({ partitions, epoch = 1, topics }) {
          const log = openKafkaLog({
            brokers: [broker.address],
            clientId: 'contract',
            groupId,
            epoch,
            topicPrefix,
            partitions,
            replicationFactor: 1
          })
          t.teardown(() => log.close())
          await log.ensureTopics(topics)
          return log
        }
      }
    }
  })
}
