import { openChdb } from '@gamenet/engines'
import { createProjector, migrate } from '@gamenet/projector'
import { foldInline, readInline } from '@gamenet/projector/testing'
import {
  LeaderboardEntryChanged,
  leaderboardEntryTopic,
  TitleCounted,
  type Topic,
  titleCountTopic,
  topics
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import type { OpenLog } from '../../src/stores/log.js'

/** Values that an older program refused. */
export const OLDER_LIMITS = { online: 100, timeMs: 60_000 }

/** The same topics with the stricter schemas of an older program. */
const olderTopics: readonly Topic[] = topics.map((topic): Topic => {
  if (topic.name === titleCountTopic.name) {
    const event = TitleCounted.refine(({ online }) => online <= OLDER_LIMITS.online, 'more players than there can be')
    return { ...topic, event }
  }
  if (topic.name !== leaderboardEntryTopic.name) return topic
  const isShort = ({ timeMs = 0 }: LeaderboardEntryChanged) => timeMs <= OLDER_LIMITS.timeMs
  return { ...topic, event: LeaderboardEntryChanged.refine(isShort, 'longer than a run can take') }
})

/** Loads and projects a complete log into tables in this folder, as an older program did. */
export async function runOlderProgram(log: OpenLog, folder: string): Promise<void> {
  const clickhouse = await openChdb({ path: folder })
  try {
    await migrate(clickhouse.control)
    const projector = createProjector({
      tables: clickhouse,
      startReading: readInline(log, olderTopics),
      sealKeys: async () => new Map(),
      folding: foldInline(),
      registry: new Registry(),
      logger: { info: () => {}, warn: () => {}, error: () => {} },
      onChange: () => {}
    })
    projector.start()
    await projector.caughtUp()
    await projector.stop()
  } finally {
    await clickhouse.close()
  }
}
