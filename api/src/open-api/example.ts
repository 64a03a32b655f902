import type { Components } from '../answers/components.js'
import { DATASETS_PATH, EXCLUDED } from '../datasets/paths.js'

/** The part of a JSON Schema that examples and pages read. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
}

/**
 * Values of one imaginary evening, each with the fields that have it: `field`, `Schema.field`, or the schema of plain
 * items; in camel case, with a `2` behind it in the second item of a list. Undefined is left out.
 */
const VALUES: readonly (readonly [unknown, string])[] = [
  [undefined, 'revealedName revealedDescription LeaderboardRow.details'],
  [undefined, 'Leaderboard.asOf Leaderboard.knownAt LeaderboardRecords.knownAt'],
  [null, 'CollectorStatus.history CalendarPeriod.rolling DatasetFile.newest UserScore.next RecordReign.toAt'],
  [[], 'LeaderboardComparison.came LeaderboardComparison.left LeaderboardComparison.fell DatasetFile.earlier'],
  ['4d5307e6', 'titleId gameTitleId groupId category'],
  ['Halo 3', 'name title gameName currentGame lastPlayedGame displayName Games'],
  ['Microsoft Game Studios', 'publisher'],
  ['2007-09-25', 'releaseDate'],
  ['https://images.example.org/halo3.png', 'image imageUrl'],
  ['LuckyBadger', 'username FoundUser.name'],
  ['CalmOtter', 'raterUsername'],
  ['Lucky Badger', 'gamertag playerName linkedGamertag explicitConsoleGamertag leaderboardPlayerName hostName leader'],
  ['Lucky Badger', 'spellings lobbyHostNames SuggestedPlayers.results LeaderboardRow.name ComparedEntry.name'],
  ['Lucky Badger', 'FoundPlayer.name'],
  ['Calm Otter', 'previousPlayerName playerName2 name2 PlayerBoardNext.playerName'],
  ['Badger', 'displayNameOverride'],
  ['https://images.example.org/badger.png', 'avatarUrl'],
  ['https://chat.example.org/users/12345678901234567', 'chatProfileUrl'],
  ['https://videos.example.org/badger', 'SocialLink.url'],
  ['videos', 'platform'],
  ['Laps', 'label'],
  ['Racing since 2004.', 'bio'],
  ['Good sport.', 'comment'],
  ['Best laps', 'leaderboardName FoundBoard.name ListedLeaderboard.name Leaderboard.name LeaderboardDays.name'],
  ['Best laps', 'LeaderboardRecords.name LeaderboardComparison.name'],
  ['updated', 'changeType'],
  ['01:02.345', 'rating newRating'],
  ['1:02.345', 'timeFormatted searchTime'],
  [62_345, 'timeMs newTimeMs searchTimeMs'],
  ['01:03.100', 'previousRating rating2'],
  ['1:03.100', 'timeFormatted2'],
  [63_100, 'previousTimeMs timeMs2'],
  ['01:02.300', 'PlayerBoardNext.rating'],
  ['1:02.300', 'PlayerBoardNext.timeFormatted'],
  [62_300, 'PlayerBoardNext.timeMs'],
  ['Boots on the Ground', 'achievementName AchievementHolders.name AchievementCatalogAchievement.name'],
  ['Boots on the Ground', 'UserAchievementsAchievement.name UserAchievementsGroupAchievement.name'],
  ['halo-hour', 'achievementKey key'],
  ['Play Halo 3 for an hour.', 'description'],
  ['network', 'source'],
  ['succeeded', 'lastOutcome'],
  ['title-count', 'Dataset.name'],
  ['Counts of one title at one instant.', 'meaning'],
  ['online', 'DatasetColumn.name'],
  ['UInt32', 'DatasetColumn.type'],
  ['players', 'unit'],
  ['players online', 'DatasetColumn.meaning'],
  ['2026-02', 'DatasetFile.period'],
  [`${DATASETS_PATH}/title-count/2026-02.parquet`, 'url'],
  [EXCLUDED, 'excluded'],
  ['q3Zk0a1bXw9_Tt2L', 'EntryMatch.id TimeMatch.id'],
  ['Tt2Lq3Zk0a1bXw9_', 'EntryMatch.id2'],
  ['1-0-2s', 'LeaderboardChange.id'],
  ['2026-03-14 20:00:00', 'recordedAt timestamp'],
  ['2026-03-14T18:30:00.000Z', 'from firstSeen firstSeenAt fromAt setAt'],
  ['2026-03-12T00:00:00.000Z', 'Sparklines.from'],
  ['2026-03-01', 'firstDay'],
  [1_773_518_400_000, 'UserGame.lastPlayedAt'],
  [false, 'isHidden priorOnly isContested usingSiteUsernameFallback leaderboardSupplement syncAvatarFromChat'],
  [0, 'gaps gapSeconds ties leads2 differenceMs came left fell'],
  [1, 'rank newRank leaderboardId id achievementId total count coverage weekday leads rose improved ratingCount'],
  [1, 'unlockedCount totalCount totalAchievements DailyPlayTime.daysSeen'],
  [2, 'rank2 previousRank PlayerBoard.rank UserScore.rank Leaderboard.total weeks'],
  [4, 'stars'],
  [4.91, 'Reputation.average ReputationTotals.average'],
  [5, 'points score earnedPoints totalPoints maxGamerscore'],
  [5.5, 'gainPercent'],
  [7, 'OpenMatch.currentPlayers'],
  [11, 'effectiveVotes'],
  [20, 'hour busiestHourUtc LobbyPoint.average'],
  [24, 'totalEntries'],
  [31, 'lobbies activeLobbies sessionCount lobbyCount peakLobbies currentMatches peakConcurrentMatches'],
  [45, 'gap'],
  [60, 'ageSeconds samples averageDurationMinutes'],
  [90, 'totalMinutes durationMinutes'],
  [95, 'titles'],
  [99, 'percentile'],
  [100, 'entries'],
  [188, 'lobbyPlayers activeLobbyPlayers currentPlayers'],
  [201.4, 'yearBefore'],
  [230.7, 'average'],
  [0.0451, 'share'],
  [412, 'online onlineCount peak peak24h highest matches24h matches7d matches30d'],
  [755, 'PlayerComparisonBoard.gap'],
  [2104, 'minOnline OnlinePoint.min'],
  [3710.4, 'avgOnline OnlinePoint.average'],
  [5321, 'maxOnline peakOnline OnlinePoint.onlineCount'],
  [5400, 'seconds'],
  [86_400, 'stepSeconds'],
  [184_201, 'registeredCount']
]

const VALUE_OF = new Map(VALUES.flatMap(([value, names]) => names.split(' ').map((name) => [name, value] as const)))
const BY_FORMAT: Readonly<Record<string, string>> = { 'date-time': '2026-03-14T20:00:00.000Z', date: '2026-03-14' }
/** Of every other number, unless its schema forbids it. */
const NUMBER = 12
/** Lists with two items of each kind. */
const PAIRS = ['players', 'entries']

/** Returns an example of a schema's value: lists have an item of each kind, and every field is there. */
export function exampleOf(schema: Schema, components: Components): unknown {
  return exampleIn(schema, { components, owner: '', field: '', nth: '' })
}

/** `owner` is the schema around the field; the field of an item is that of its list. */
type Place = {
  readonly components: Components
  readonly owner: string
  readonly field: string
  readonly nth: '' | '2'
}

function exampleIn(shape: Schema, place: Place): unknown {
  const { components, owner, field, nth } = place
  const names = [`${owner}.${field}`, field === '' ? owner : field].map(camel)
  const key = [...names.map((name) => `${name}${nth}`), ...names].find((name) => VALUE_OF.has(name))
  const value = VALUE_OF.get(key ?? '')
  if (key !== undefined && (value === undefined || typeof value === 'object')) return value
  const { $ref, properties, additionalProperties, items, anyOf, oneOf = anyOf } = shape
  if ($ref !== undefined) {
    const name = nameOf($ref)
    return exampleIn(components.named(name), { ...place, owner: name, field: '' })
  }
  if (properties !== undefined) {
    const fields = Object.entries(properties)
    return Object.fromEntries(fields.map(([name, each]) => [name, exampleIn(each, { ...place, field: name })]))
  }
  if (typeof additionalProperties === 'object') return { 'Halo 3': exampleIn(additionalProperties, place) }
  if (items !== undefined) {
    const item = items.$ref === undefined ? items : (components.named(nameOf(items.$ref)) as Schema)
    const kinds = item.oneOf ?? item.anyOf ?? [items]
    const each = PAIRS.includes(field) ? (['', '2'] as const) : ([''] as const)
    return each.flatMap((nth) => kinds.map((kind) => exampleIn(kind, { ...place, nth })))
  }
  return oneOf?.[0] === undefined ? scalar(shape, value) : exampleIn(oneOf[0], place)
}

function scalar({ type, format = '', minimum = 0, maximum = NUMBER, ...shape }: Schema, value: unknown): unknown {
  if (shape.const !== undefined) return shape.const
  if (shape.enum !== undefined) return shape.enum.includes(value) ? value : shape.enum[0]
  if (type?.includes('string')) return String(value ?? BY_FORMAT[format] ?? 'text')
  if (type?.includes('boolean')) return typeof value === 'boolean' ? value : true
  if (!/integer|number/.test(String(type))) return null
  return typeof value === 'number' ? value : Math.max(minimum, Math.min(maximum, NUMBER))
}

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? ''

const camel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase())
