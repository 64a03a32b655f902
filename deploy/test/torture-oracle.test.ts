import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { createPeople, publish } from '@gamenet/ingest'
import { instantOf, type PresenceSeen, presenceTopic, type TitleCounted, titleCountTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { openFacts } from '../proof/torture/facts.js'
import { differencesFromShown } from '../proof/torture/oracle.js'
import { projectLog } from '../proof/torture/replay.js'
import { shownAt } from '../proof/torture/world.js'
import { openTestWrites } from './service/open-engines.js'

const QUIET = { info: () => {}, warn: () => {}, error: () => {} }
const SEED = 1116087129
/** A page with player 13 online, and the next one without. */
const [BEFORE, AFTER] = [27, 28]
const SECOND = 1_795_319_463

test('the oracle accepts the pages of two processes that read in one second, and no others', async (t) => {
  const directory = t.testdir()
  const facts = openFacts(directory, SEED, 'kafka')
  for (let step = 1; step <= AFTER; step += 1) facts.add({ fact: 'shown', step, second: SECOND - AFTER + step })
  const tables = await openChdb({ path: join(directory, 'tables') })
  t.teardown(() => tables.close())
  const log = openEmbeddedLog({ path: join(directory, 'log'), partitions: 3 })
  t.teardown(() => log.close())
  const writes = await openTestWrites(t, directory)
  const people = createPeople({ writes: async () => writes, registry: new Registry() })
  const sightings = (step: number, second = SECOND): PresenceSeen[] =>
    shownAt(SEED, step).players.map((player) => ({
      ...player,
      state: player.game === undefined ? 'offline' : 'online',
      periodSeconds: 1,
      observedAt: instantOf(second * 1000)
    }))
  const counts = (step: number): TitleCounted[] =>
    shownAt(SEED, step).titles.map(({ titleId, online, lobbies }) => ({
      titleId,
      online,
      ...(lobbies !== null && { sessions: lobbies.sessions, lobbyPlayers: lobbies.players }),
      observedAt: instantOf(SECOND * 1000)
    }))
  const say = async (said: { sightings: readonly PresenceSeen[]; counts?: readonly TitleCounted[] }): Promise<void> => {
    await publish(log, presenceTopic, said.sightings, { source: '/test' }, people)
    await publish(log, titleCountTopic, said.counts ?? [], { source: '/test' })
  }
  const differences = (canBePartial = true) => differencesFromShown({ facts, tables, canBePartial })

  // A user known to be offline is not published.
  const online = (step: number) => sightings(step).filter(({ state }) => state === 'online')
  const [first, second] = [counts(BEFORE), counts(AFTER)]
  await say({ sightings: online(BEFORE), counts: [...first.slice(0, 2), ...second, ...first.slice(2)] })
  await say({ sightings: online(AFTER) })
  await projectLog({ tables, reader: log, writes, logger: QUIET })
  t.same(await differences(), [])
  t.match(await differences(false), [/steps at/], 'a single process publishes one page at a time')

  const elsewhere = online(AFTER).map((each) => ({ ...each, game: 'Game 9' }))
  await say({ sightings: [...elsewhere, ...sightings(AFTER, SECOND - 1)] })
  await projectLog({ tables, reader: log, writes, logger: QUIET })
  t.match(await differences(), [
    /^sightings of step 28: found/,
    /^sightings at \d+ shows step 28, which was shown from/
  ])
})
