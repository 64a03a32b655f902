import { z } from 'zod'
import { type Topic, topics } from '../src/index.js'

type Facts = { readonly what: string; readonly key: string; readonly fold: string }

const NEWEST = (of: string) =>
  `keep the event with the highest instant per ${of}; of equal instants, the highest offset`
const SAMPLE = (of: string) => `each event is a sample; of two with one ${of} and instant, the higher offset counts`

const FACTS: Readonly<Record<string, Facts>> = {
  'network-count': {
    what: 'Counts of the whole network.',
    key: '`network`',
    fold: 'each event is a sample; of two with one instant, the higher offset counts, per field'
  },
  'title-count': { what: 'Players of one title.', key: '`titleId`', fold: SAMPLE('`titleId`') },
  title: { what: 'Name and features of a title.', key: '`titleId`', fold: NEWEST('`titleId`') },
  'title-status': {
    what: 'Whether a title is on the network. It left when the lists of games lacked it for 10 minutes, at least twice; each process counts both from its own start.',
    key: '`titleId`',
    fold: NEWEST('`titleId`')
  },
  leaderboard: {
    what: 'A board of a title, and how it is sorted.',
    key: '`titleId/leaderboardId`',
    fold: NEWEST('key')
  },
  'leaderboard-entry': {
    what: 'An entry of a board that came, changed or left.',
    key: '`titleId/leaderboardId`',
    fold: 'per board, `playerName` and `occurrence`, the newest event is the state; `removed` deletes the entry. Of equal instants, `removed` comes first, then values from the worst to the best. Scores with `isAscending` are better when lower. Ranks are the running sums of `step` by `order`'
  },
  'match-list': {
    what: 'All matches of a title at one instant.',
    key: '`titleId`',
    fold: 'each event replaces the list of its title; a match that is missing in the next list has ended'
  },
  presence: { what: 'A user was seen.', key: 'the number of the person', fold: 'needs the seal keys' },
  profile: { what: 'A profile after an edit.', key: 'the number of the person', fold: 'the highest `revision` counts' },
  rating: {
    what: 'A user rated a profile.',
    key: 'the number of the rated person',
    fold: 'the highest `revision` per pair of people counts'
  },
  'achievement-unlock': {
    what: 'A user unlocked an achievement.',
    key: 'the number of the person',
    fold: 'the first event per person and `achievementId` counts'
  },
  scrape: { what: 'A run of a scraper, after its samples.', key: '`source`', fold: NEWEST('`source`') },
  'import-run': { what: 'The progress of an import.', key: '`importId`', fold: NEWEST('`importId`') },
  'import-retraction': {
    what: 'An import was undone.',
    key: '`importId`',
    fold: 'ignore all events with this `ce_importid`, earlier and later ones'
  }
}

/** Returns the chapters of docs/topics.md that are derived from the topics. */
export function topicChapters(): string {
  return topics.map(chapterOf).join('\n')
}

function chapterOf(topic: Topic): string {
  const facts = FACTS[topic.name]
  if (facts === undefined) throw new Error(`schemas/test/topic-pages.ts has no facts about the topic ${topic.name}`)
  const { $schema: _, ...schema } = z.toJSONSchema(topic.event, { io: 'input', unrepresentable: 'any' })
  const sealed = topic.people === undefined ? 'no' : 'yes: it is about people'
  return `## ${topic.name}

${facts.what}

| type | key | sealed | fold |
|---|---|---|---|
| \`gamenet.${topic.name}.v${topic.version}\` | ${facts.key} | ${sealed} | ${facts.fold} |

\`\`\`json
${JSON.stringify(schema)}
\`\`\`
`
}
