/* Made from docs/openapi.json and the table of refusals by api/test/docs.test.ts, which says how to refresh it. */

/** The codes of refusals, explained at /docs/errors of a service. */
export type ErrorCode =
  | 'request_invalid'
  | 'request_malformed'
  | 'host_invalid'
  | 'host_missing'
  | 'json_malformed'
  | 'body_encoding_invalid'
  | 'query_encoding_invalid'
  | 'path_encoding_invalid'
  | 'window_invalid'
  | 'answer_too_large'
  | 'session_key_missing'
  | 'session_invalid'
  | 'profile_not_owned'
  | 'username_unstable'
  | 'chat_link_missing'
  | 'chat_profile_unknown'
  | 'chat_away'
  | 'rating_of_self'
  | 'title_unknown'
  | 'achievement_unknown'
  | 'player_unknown'
  | 'page_beyond_end'
  | 'leaderboard_unknown'
  | 'leaderboard_not_yet_seen'
  | 'instant_in_future'
  | 'cursor_invalid'
  | 'user_unknown'
  | 'game_unknown'
  | 'path_unknown'
  | 'dataset_unknown'
  | 'dataset_file_unknown'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'precondition_failed'
  | 'body_too_large'
  | 'uri_too_long'
  | 'media_type_unsupported'
  | 'range_unsatisfiable'
  | 'expectation_failed'
  | 'write_budget_spent'
  | 'session_checks_spent'
  | 'headers_too_large'
  | 'internal'
  | 'not_ready'
  | 'auth_away'
  | 'erasure_in_progress'
  | 'engine_busy'
  | 'data_damaged'
  | 'disk_full'
  | 'streams_per_address'
  | 'connections_per_address'
  | 'connections_full'
  | 'exports_per_address'
  | 'exports_full'
  | 'streams_full'
  | 'engine_away'

/** All achievements. */
export type AchievementCatalog = {
  achievements: AchievementCatalogAchievement[]
  groups: AchievementCatalogGroup[]
  stats: AchievementCatalogStats
}

export type AchievementCatalogAchievement = {
  id: number
  /** `hidden-<id>` for a hidden achievement. */
  key: string
  /** `Hidden Achievement` for a hidden achievement. */
  name: string
  /** "" for a hidden achievement. */
  description: string
  points: number
  is_hidden: boolean
  /** null for an achievement of the whole network. */
  game_title_id: string | null
  /** The `groupId` of its group. */
  category: string
  /** Absolute address of the picture of its game. */
  image_url: string | null
  /** Number of users who have it. */
  unlock_count: number
}

export type AchievementCatalogGroup = {
  groupId: string
  displayName: string
  titleId: string | null
  /** Absolute address, "" when unknown. */
  imageUrl: string
  totalCount: number
  totalPoints: number
}

export type AchievementCatalogStats = {
  maxGamerscore: number
  totalAchievements: number
  playersWithAchievements: number
}

export type AchievementEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'achievement'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: RecentUnlock
}

export type AchievementHolder = {
  username: string
  unlockedAt: string
}

/** The users who have the achievement, newest unlock first. */
export type AchievementHolders = {
  id: number
  /** `hidden-<id>` for a hidden achievement. */
  key: string
  /** `Hidden Achievement` for a hidden achievement. */
  name: string
  points: number
  /** Number of users who have it. */
  total: number
  holders: AchievementHolder[]
}

/** The highest scores. */
export type AchievementLeaderboard = {
  leaderboard: AchievementScore[]
}

export type AchievementScore = {
  /** Equal scores share a rank. */
  rank: number
  username: string
  totalScore: number
  achievementCount: number
}

/** The peaks of the period. */
export type ActivitySummary = {
  period: 'today' | '7d'
  peakOnline: number
  peakOnlineAt: string | null
  peakLobbies: number
  peakLobbiesAt: string | null
  /** null if no game has a count above 0. */
  mostPlayedGame: ActivitySummaryMostPlayedGame | null
  /** Counts of users online; 0: `peakOnline` 0 was not counted. */
  onlineSampleCount: number
  /** Counts of lobbies; 0: `peakLobbies` 0 was not counted. */
  lobbySampleCount: number
  /** Titles with a count above 0. */
  gamesWithActivityCount: number
  /** Instants with a count of the network. */
  totalSnapshotCount: number
}

export type ActivitySummaryMostPlayedGame = {
  name: string
  titleId: string
  peak: number
}

/** Periods with a sample, oldest first; of one period in the order of the titles. */
export type Calendar = CalendarPeriod[]

export type CalendarPeriod = {
  /** First day of the period, in the time zone of the request. */
  date: string
  /** null: the network. */
  titleId: string | null
  /** The game, or the metric of the network. */
  name: string
  peak: number
  /** First instant of the peak. */
  peakAt: string
  min: number
  /** Mean of the samples, one decimal. */
  average: number
  samples: number
  /** Average minus the average of the period before, one decimal; null if that has no sample. */
  gain: number | null
  /** `gain` in percent of the average before, one decimal; null where that is 0 or missing. */
  gainPercent: number | null
  /** Average of the same period of the year before; of a week, 52 weeks before. null if that has no sample. */
  yearBefore: number | null
  /**
   * Average divided by the average of users online on the network, 4 decimals; null for the network, and where that has
   * no sample.
   */
  share: number | null
  /** Mean of the samples of the last `rolling` periods, this one included, one decimal; null unless requested. */
  rolling: number | null
}

export type ChangeEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'change'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: LeaderboardChange
}

/** Age and gaps of each source that has ever run. */
export type CollectorStatus = {
  /** Progress of a history that is being loaded; null when there is none. */
  history: CollectorStatusHistory | null
  sources: SourceStatus[]
}

export type CollectorStatusHistory = {
  percent: number
}

export type ComparedEntry = {
  name: string
  previousRank: number | null
  newRank: number | null
  previousRating: string | null
  newRating: string | null
  previousTimeMs: number | null
  newTimeMs: number | null
  isTime: boolean
}

export type CountEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'count'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: StreamedCount
}

/** The gaps of the collector, by source, oldest first. */
export type Coverage = Gap[]

/** One row per UTC day that has a sample, oldest first. */
export type DailyOnline = OnlineDay[]

/** Days on which the user was seen or played, oldest first; others have no row. */
export type DailyPlayTime = {
  username: string
  /** Of all days listed: whole seconds summed, then floored. */
  totalMinutes: number
  /** Days listed with a sighting online. */
  daysSeen: number
  days: DailyPlayTimeDay[]
}

export type DailyPlayTimeDay = {
  /** UTC. */
  date: string
  totalMinutes: number
  /** Whether there was a sighting online. */
  isSeen: boolean
  /** Longest played first. */
  games: DailyPlayTimeDayGame[]
}

export type DailyPlayTimeDayGame = {
  gameName: string
  titleId: string | null
  totalMinutes: number
  seconds: number
}

export type Dataset = {
  name: string
  meaning: string
  columns: DatasetColumn[]
  /** Newest first. */
  files: DatasetFile[]
}

export type DatasetColumn = {
  name: string
  /** The type in ClickHouse. */
  type: string
  unit?: string
  meaning: string
}

export type DatasetFile = {
  /** A month (UTC), `2025-03`, or `newest`. */
  period: string
  /** Its newest revision. */
  url: string
  /** Whether the month ended more than a day ago. */
  isClosed: boolean
  /** Null until the file is made: soon after this answer, or when it is requested. */
  newest: DatasetFileRevision | null
  /** The revision before, if late events or an import undo replaced one. */
  earlier: DatasetFileRevision[]
}

export type DatasetFileRevision = {
  /** 0 while the month is open; then counts the states that were published. */
  revision: number
  /** Names the content; it never changes. 404 once a later revision has replaced it twice. */
  url: string
  rows: number
  bytes: number
  /** The first instant of its rows; null without rows. */
  first: string | null
  last: string | null
  /** Of the bytes. */
  sha256: string
  /** Of the rows in any order: sum and exclusive or of cityHash64 over the columns, NULL as `\N`; hexadecimal. */
  rowsHash: string
  /** Events before it are in the file: `epoch/partition/offset`, blank-separated. */
  position: string
  madeAt: string
}

/** The datasets and their files. */
export type DatasetList = {
  datasets: Dataset[]
  /** Data that is in no dataset. */
  excluded: string
}

/** The profile after the edit. */
export type EditedProfile = {
  avatar_url: string
  chat_profile_url: string
  display_name_override: string | null
  linked_gamertag: string
  /** Whether the last verified session has the linked gamertag. */
  console_verified: boolean
  bio: string
  social_links: SocialLink[]
  avatar_hue: number | null
  sync_avatar_from_chat: boolean
}

export type EntryMatch = {
  /** Opaque; the same entry of the same board has the same id. */
  id: string
  leaderboard_id: number
  leaderboard_name: string
  title_id: string
  game_name: string
  player_name: string
  rank: number
  rating: string
  time_ms: number
  time_formatted: string
  is_time: boolean
}

/** The entries found, best rank first. */
export type EntryMatches = {
  results: EntryMatch[]
  /** Number of entries in `results`. */
  count: number
}

export type Feedback = {
  stars: number
  comment: string | null
  createdAt: string
  raterUsername: string
}

export type FoundBoard = {
  kind: 'board'
  name: string
  titleId: string
  gameName: string
  leaderboardId: number
  /** Whether the game still lists the board. */
  listed: boolean
}

export type FoundGame = {
  kind: 'game'
  name: string
  titleId: string
}

export type FoundPlayer = {
  kind: 'player'
  name: string
}

export type FoundUser = {
  kind: 'user'
  /** The username. */
  name: string
}

/** The game. */
export type Game = {
  titleId: string
  name: string
  /** The longer, official title. */
  title: string
  /** Absolute address, "" when unknown. */
  image: string
  publisher: string
  /** `YYYY-MM-DD`, "" when unknown. */
  releaseDate: string
}

export type GameListed = {
  titleId: string
  /** As the list of names has it. */
  name: string
  publisher: string
}

/** Names in alphabetical order; with `fields=all` with ids and publishers. */
export type Games = string[] | GameListed[]

export type Gap = {
  /** A source of the collector, or `counts`: hours with a count of users online, imported ones too. */
  source: string
  /** Last success before the gap. */
  from: string
  /** First success after it; null while it lasts. */
  to: string | null
  /** Length, up to the end of the window while it lasts. */
  seconds: number
}

export type GivenRating = {
  stars: number
  comment: string | null
  createdAt: string
}

export type Health = {
  status: 'ok'
}

/** Hours of the week with a sample, from Monday 0:00. */
export type HourMatrix = HourOfWeek[]

export type HourOfWeek = {
  /** 1: Monday, 7: Sunday. */
  weekday: number
  /** Hour of the day in the time zone of the request. */
  hour: number
  /** Mean of the means of the weeks, one decimal. */
  average: number
  /** Standard deviation of the means of the weeks, one decimal; 0 of a single week says nothing. */
  spread: number
  /** Lowest mean of a week, one decimal. */
  lowest: number
  /** Highest mean of a week, one decimal. */
  highest: number
  /** Weeks with a sample in this hour. */
  weeks: number
}

/** The board. */
export type Leaderboard = {
  titleId: string
  gameName: string
  leaderboardId: string
  /** "" when only entries of the board are known. */
  name: string
  /** Whether the game still lists the board. */
  listed: boolean
  /** The requested instant; absent: now. */
  asOf?: string
  /** Number of entries of the complete board. */
  total: number
  entries: LeaderboardRow[]
}

export type LeaderboardChange = {
  /** Opaque; survives rebuilds. */
  id: string
  titleId: string
  gameName: string
  leaderboardId: number
  leaderboardName: string
  playerName: string
  changeType: 'new' | 'updated' | 'removed'
  previousRank: number | null
  newRank: number | null
  previousRating: string | null
  newRating: string | null
  previousTimeMs: number | null
  newTimeMs: number | null
  isTime: boolean
  changedAt: string
}

/** Changes of entries. */
export type LeaderboardChanges = LeaderboardChange[]

/** The changes of the board in the order of the later board; removed entries in that of the earlier one. */
export type LeaderboardComparison = {
  titleId: string
  gameName: string
  leaderboardId: string
  /** As of the later instant; "" when only entries of the board were known. */
  name: string
  from: string
  /** null: now. */
  to: string | null
  counts: LeaderboardComparisonCounts
  came: ComparedEntry[]
  left: ComparedEntry[]
  /** Has a better rank. */
  rose: ComparedEntry[]
  /** Has a worse rank. */
  fell: ComparedEntry[]
  /** Has a better time or score. */
  improved: ComparedEntry[]
}

/** Lengths of the complete lists. */
export type LeaderboardComparisonCounts = {
  came: number
  left: number
  rose: number
  fell: number
  improved: number
}

export type LeaderboardDay = {
  /** A day in UTC. */
  date: string
  /** Entries that came. */
  new: number
  /** Entries that got another rating. */
  updated: number
  /** Entries that left. */
  removed: number
}

/** The days on which the board changed, oldest first. */
export type LeaderboardDays = {
  titleId: string
  gameName: string
  leaderboardId: string
  /** "" when only entries of the board are known. */
  name: string
  /** Whether the game still lists the board. */
  listed: boolean
  /** When a list or an entry first mentioned the board. */
  firstSeenAt: string
  days: LeaderboardDay[]
}

/** The reigns of the record, oldest first. */
export type LeaderboardRecords = {
  titleId: string
  gameName: string
  leaderboardId: string
  /** "" when only entries of the board are known. */
  name: string
  listed: boolean
  /** Number of reigns of the board. */
  total: number
  records: RecordReign[]
}

export type LeaderboardRow = {
  rank: string
  name: string
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  /** Further columns of the board, if it has any. */
  details?: Record<string, string>
}

/** The boards that are listed now, counted. */
export type LeaderboardSummary = {
  titleId: string
  gameName: string
  leaderboard_count: number
  total_entries: number
  time_entries: number
  score_entries: number
}

/** The boards that are listed now, by id. */
export type Leaderboards = ListedLeaderboard[]

export type ListedLeaderboard = {
  id: number
  name: string
  titleId: string
  gameName: string
}

/** Open lobbies of all games, oldest first. */
export type LobbyHistory = LobbyPoint[]

export type LobbyPoint = {
  /** Instant in UTC, `YYYY-MM-DD HH:MM:SS` */
  recorded_at: string
  lobby_count: number
  /** Lowest sample of the bucket. */
  min?: number
  /** Mean of the samples of the bucket, one decimal. */
  average?: number
  /** Samples in the bucket. */
  samples?: number
}

export type Match = {
  hostName: string
  firstSeen: string
  lastSeen: string
  /** From first to last sight, one decimal. */
  durationMinutes: number
  peakPlayers: number
  /** 0 when unknown. */
  maxPlayers: number
  /** Whether the newest list still has it. */
  isOpen: boolean
}

export type MatchEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'match'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: Matches
}

/** Matches, newest first. */
export type MatchHistory = Match[]

/** The last 30 days of the title’s matches. */
export type MatchStats = {
  titleId: string
  gameName: string
  currentMatches: number
  currentPlayers: number
  matches24h: number
  matches7d: number
  matches30d: number
  peakConcurrentMatches: number
  peakConcurrentMatchesAt: string | null
  /** Mean over the matches, one decimal. */
  averageDurationMinutes: number
  /** Mean players of a lobby of a list, one decimal. */
  averagePlayers: number
  /** Hour of the day with the highest mean of players; null if `hoursWithLists` is below 24. */
  busiestHourUtc: number | null
  /** Hours of the 30 days with a list; 0: nothing was counted. */
  hoursWithLists: number
  topHosts: MatchStatsTopHost[]
}

export type MatchStatsTopHost = {
  hostName: string
  matches: number
}

/** The lobbies of the newest list. */
export type Matches = {
  titleId: string
  gameName: string
  matches: OpenMatch[]
}

export type NewUnlock = {
  unlockedAt: string
  achievementId: number
  achievementKey: string
  /** With the game: `Name (Game)`; a hidden one is `Hidden Achievement`. */
  achievementName: string
  /** `Network` for an achievement of the whole network. */
  gameName: string
  points: number
}

export type OnlineDay = {
  /** UTC day, `YYYY-MM-DD` */
  date: string
  min_online: number
  max_online: number
  /** Mean of the samples, one decimal. */
  avg_online: number
  samples: number
  /** Share of the hours with a sample, 3 decimals. */
  coverage: number
}

/** Users online on the whole network, oldest first. */
export type OnlineHistory = OnlinePoint[]

export type OnlinePoint = {
  /** Instant in UTC, `YYYY-MM-DD HH:MM:SS` */
  recorded_at: string
  online_count: number
  /** Lowest sample of the bucket. */
  min?: number
  /** Mean of the samples of the bucket, one decimal. */
  average?: number
  /** Samples in the bucket. */
  samples?: number
}

export type OnlineTitle = {
  name: string
  online: number
  titleId: string
  /** Absolute address, "" when unknown. */
  image: string
  publisher: string
  activeLobbies: number
  sessionCount: number
  activeLobbyPlayers: number
  hasActiveSession: boolean
  lobbyHostNames: string[]
}

/** Games by name. */
export type OnlineUsers = Record<string, OnlineTitle>

export type OpenMatch = {
  hostName: string
  currentPlayers: number
  maxPlayers: number
  /** Instant of the list. */
  timestamp: string
}

export type Peak = {
  /** null: the network. */
  titleId: string | null
  /** The game, or the metric of the network. */
  name: string
  peak: number
  /** First instant of the peak. */
  peakAt: string
  /** Mean of the samples, one decimal. */
  average: number
  samples: number
  /** First UTC day with a sample. */
  firstDay: string
  /** Last UTC day with a sample. */
  lastDay: string
}

/** The network’s metrics, then games by peak, highest first. */
export type Peaks = Peak[]

export type PlayTime = {
  /** Whole seconds in games summed, then floored to minutes. */
  totalMinutes: number
  /**
   * `offline` also if the user was never seen, or if the newest sighting online is older than three of its own periods.
   */
  lastState: 'online' | 'offline'
  /** null when offline or in no game. */
  currentGame: string | null
  lastPlayedGame: string | null
  /** Newest sighting in a game. */
  lastPlayedAt: string | null
  /** Newest sighting online. */
  lastOnlineAt: string | null
  /** When the user was last checked: the newest sighting, or the newest complete scrape. */
  lastCheckTs: string | null
  /** UTC days with a sighting online. */
  daysSeen: number
}

/** The boards of a player, best rank first. */
export type Player = {
  /** As requested. */
  playerName: string
  /** All spellings of the name on boards. */
  spellings: string[]
  /** Entries on all boards. */
  total: number
  boards: PlayerBoard[]
}

export type PlayerBoard = {
  leaderboardId: number
  leaderboardName: string
  titleId: string
  gameName: string
  playerName: string
  rank: number
  /** Number of entries of the complete board. */
  entries: number
  /** Share of the board’s entries whose rank is no better, this one included, in percent, one decimal. */
  percentile: number
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  /** The nearest entry of a better rank; null for a leader. */
  next: PlayerBoardNext | null
  /** When this entry last changed. */
  observedAt: string
}

export type PlayerBoardNext = {
  rank: number
  playerName: string
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  /** Milliseconds or points from this entry to that one; null if either is not a number. */
  gap: number | null
}

/** The boards with entries of both players, the best rank of either first. */
export type PlayerComparison = {
  /** In the order of the request. */
  players: PlayerComparisonPlayer[]
  /** Boards with entries of both. */
  total: number
  /** Shared boards on which both have the same rank. */
  ties: number
  boards: PlayerComparisonBoard[]
}

export type PlayerComparisonBoard = {
  leaderboardId: number
  leaderboardName: string
  titleId: string
  gameName: string
  /** As requested; null if both share a rank. */
  leader: string | null
  /** Milliseconds or points between the entries; null if either is not a number. */
  gap: number | null
  /** The best entry of each, in the order of the request. */
  entries: PlayerComparisonBoardEntry[]
}

export type PlayerComparisonBoardEntry = {
  /** As the board shows it. */
  playerName: string
  rank: number
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
}

export type PlayerComparisonPlayer = {
  /** As requested. */
  playerName: string
  /** Boards with an entry of the player, shared or not. */
  leaderboardsOn: number
  /** Shared boards on which the player has the better rank. */
  leads: number
}

export type PlayerUser = {
  username: string
  /** As the user linked it. */
  gamertag: string
}

/** The users who have the gamertag, by name. */
export type PlayerUsers = {
  /** As requested. */
  playerName: string
  users: PlayerUser[]
}

export type Profile = {
  avatar_url: string
  chat_profile_url: string
  display_name_override: string | null
  linked_gamertag: string
  /** Whether the last verified session has the linked gamertag. */
  console_verified: boolean
  bio: string
  social_links: SocialLink[]
}

/** Profile and statistics of the user. */
export type ProfileSummary = {
  username: string
  profile: Profile
  playTime: PlayTime
  achievementScore: number
  achievementCount: number
  /** Of the last 7 days, newest first. */
  newUnlocks: NewUnlock[]
  /** The linked gamertag, else the newest that presence saw, else the username. */
  leaderboardPlayerName: string
  leaderboardStats: ProfileSummaryLeaderboardStats
  /** Whether a gamertag is linked. */
  usesExplicitConsoleGamertag: boolean
}

export type ProfileSummaryLeaderboardStats = {
  leaderboardsOn: number
  /** Boards on which the player is among the first 10. */
  top10Count: number
}

/** The rating is stored. */
export type RatingGiven = {
  success: true
  reputation: ReputationTotals
  viewer: GivenRating
}

export type Readiness = {
  status: 'ready'
  /** Engines that do not answer and disks that are full, while known answers are served. */
  degraded?: string[]
  /** Damaged tables that are not rebuilt yet. */
  repairing?: string[]
}

export type RecentRecord = {
  titleId: string
  gameName: string
  leaderboardId: number
  leaderboardName: string
  playerName: string
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  setAt: string
  /** Who held it until then; null for a first record. */
  previousPlayerName: string | null
  previousRating: string | null
  previousTimeMs: number | null
  /** Whether a former record was beaten. First records are mostly entries that a board had at its first visit. */
  isContested: boolean
  /** Whether it is still the best. */
  isCurrent: boolean
}

/** Records as they were set, newest first. */
export type RecentRecords = RecentRecord[]

export type RecentUnlock = {
  username: string
  unlockedAt: string
  achievementId: number
  achievementKey: string
  /** With the game: `Name (Game)`; a hidden one is `Hidden Achievement`. */
  achievementName: string
  /** `Network` for an achievement of the whole network. */
  gameName: string
  points: number
}

/** The newest unlocks, newest first. */
export type RecentUnlocks = {
  recent: RecentUnlock[]
}

export type RecordEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'record'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: RecentRecord
}

export type RecordReign = {
  playerName: string
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  /** When it was set. */
  setAt: string
  /** When it became the best: later than set where another was removed. */
  fromAt: string
  /** When it was beaten or removed; null while it stands. */
  toAt: string | null
  /** Whether it began at the board's first visit with entries: it has stood since before `fromAt`. */
  fromIsFirstSight: boolean
  /** Whether a former record was beaten. A first sighting beat none. */
  isContested: boolean
}

/** One point per UTC day that has a count, oldest first. */
export type RegisteredUsers = RegisteredUsersDay[]

export type RegisteredUsersDay = {
  /** UTC day, `YYYY-MM-DD` */
  date: string
  registered_count: number
}

/** The reputation of the profile. */
export type Reputation = {
  /** With a prior of 10 ratings of 5 stars, two decimals. */
  average: number
  ratingCount: number
  /** `ratingCount` and the 10 votes of the prior. */
  effectiveVotes: number
  priorOnly: boolean
  /** Newest first. */
  feedback: Feedback[]
  /** The rating of the signed-in viewer; null otherwise. */
  viewer: GivenRating | null
}

export type ReputationTotals = {
  /** With a prior of 10 ratings of 5 stars, two decimals. */
  average: number
  ratingCount: number
  /** `ratingCount` and the 10 votes of the prior. */
  effectiveVotes: number
  priorOnly: boolean
}

export type RetractedEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'retracted'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: RetractedImport
}

/** An undone import: its events are no longer in the past of the stream. */
export type RetractedImport = {
  importId: string
  kinds: ('count' | 'title-count' | 'change' | 'record' | 'match' | 'achievement' | 'live-counts')[]
  retractedAt: string
}

/** The boards on which all players have their ranks, the closest first. */
export type RosterMatches = {
  results: RosterMatchesResult[]
  /** Number of boards in `results`. */
  count: number
}

export type RosterMatchesResult = {
  leaderboard_id: number
  leaderboard_name: string
  title_id: string
  game_name: string
  /** The entry of each player, in the order of the request. */
  players: EntryMatch[]
}

export type SearchResult = FoundGame | FoundBoard | FoundPlayer | FoundUser

/** Games, then boards, players and users. */
export type SearchResults = SearchResult[]

export type SocialLink = {
  platform: string
  url: string
  label?: string
}

export type SourceStatus = {
  /** A source of the collector, or `counts`: hours with a count of users online, imported ones too. */
  source: string
  lastSuccessAt: string | null
  /** Since the last success, to the minute; null: never. */
  ageSeconds: number | null
  /** `succeeded`, `partial` or `failed`. */
  lastOutcome: string
  /** Gaps in the last 24 hours. */
  gaps: number
  /** Their length within the last 24 hours. */
  gapSeconds: number
}

export type Sparkline = {
  titleId: string
  name: string
  /** Peak of each step, oldest first; null without a sample. */
  online: (number | null)[]
}

/** The trend line of each title, by id. */
export type Sparklines = {
  /** Begin of the first step. */
  from: string
  /** Length of a step. */
  stepSeconds: number
  titles: Sparkline[]
}

export type StreamEvent =
  | CountEvent
  | TitleCountEvent
  | ChangeEvent
  | RecordEvent
  | MatchEvent
  | AchievementEvent
  | RetractedEvent

/** The next events, at most 500; none when nothing came in time. */
export type StreamPage = {
  events: StreamEvent[]
  /** The parameter `after` of the next request. */
  cursor: string
}

/** Counts of the network; null for one that the source did not give. */
export type StreamedCount = {
  /** Instant in UTC, `YYYY-MM-DD HH:MM:SS` */
  recorded_at: string
  registered_count: number | null
  online_count: number | null
  lobby_count: number | null
}

/** Players of one title. */
export type StreamedTitleCount = {
  titleId: string
  gameName: string
  /** Instant in UTC, `YYYY-MM-DD HH:MM:SS` */
  recorded_at: string
  online_count: number
  activeLobbies: number
  activeLobbyPlayers: number
}

/** Names of players in alphabetical order of their folded form. */
export type SuggestedPlayers = {
  results: string[]
  /** Number of names in `results`. */
  count: number
}

export type TimeMatch = {
  /** Opaque; the same entry of the same board has the same id. */
  id: string
  leaderboard_id: number
  leaderboard_name: string
  title_id: string
  game_name: string
  player_name: string
  rank: number
  rating: string
  time_ms: number
  time_formatted: string
  is_time: boolean
  /** Difference from the requested time. */
  difference_ms: number
}

/** The entries found, nearest first. */
export type TimeMatches = {
  /** `M:SS.mmm` */
  searchTime: string
  searchTimeMs: number
  /** Milliseconds. */
  tolerance: number
  results: TimeMatch[]
  /** Number of entries in `results`. */
  count: number
}

/** Achievements unlocked, records set and ranks gained, newest first. */
export type Timeline = TimelineEntry[]

export type TimelineEntry = TimelineUnlock | TimelineRecord | TimelineRank

export type TimelineRank = {
  kind: 'rank'
  at: string
  titleId: string
  gameName: string
  leaderboardId: number
  leaderboardName: string
  playerName: string
  /** null for a player who was not on the board before. */
  previousRank: number | null
  newRank: number
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
}

export type TimelineRecord = {
  kind: 'record'
  at: string
  titleId: string
  gameName: string
  leaderboardId: number
  leaderboardName: string
  playerName: string
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
}

export type TimelineUnlock = {
  kind: 'unlock'
  at: string
  achievementId: number
  achievementKey: string
  /** With the game: `Name (Game)`; a hidden one is `Hidden Achievement`. */
  achievementName: string
  /** `Network` for an achievement of the whole network. */
  gameName: string
  points: number
}

export type TitleCountEvent = {
  /** Where a stream with the same filter continues behind this event. */
  cursor: string
  kind: 'title-count'
  happenedAt: string
  /** Later than `happenedAt` for an imported event: when its import began. */
  knownAt: string
  data: StreamedTitleCount
}

/** Players of the title, oldest first. */
export type TitleOnlineHistory = TitleOnlinePoint[]

export type TitleOnlinePoint = {
  /** Instant in UTC, `YYYY-MM-DD HH:MM:SS` */
  recorded_at: string
  online_count: number
  /** Lowest sample of the bucket. */
  min?: number
  /** Mean of the samples of the bucket, one decimal. */
  average?: number
  /** Samples in the bucket. */
  samples?: number
}

export type TitleRank = {
  /** First day of the period, in the time zone of the request. */
  date: string
  /** 1: no title has a higher average; equal ones share a rank. */
  rank: number
  /** Titles with a sample in the period. */
  titles: number
  /** Mean of the samples, one decimal. */
  average: number
}

/** Periods in which the title has a sample, oldest first. */
export type TitleRanks = TitleRank[]

/** The numbers of the title. */
export type TitleSummary = {
  titleId: string
  name: string
  /** Players in the newest scrape; null if it lacks the title. */
  online: number | null
  /** Instant of `online`. */
  onlineAt: string | null
  /** `online` minus the count 24 hours earlier; null without a sample within 30 minutes of that. */
  change24h: number | null
  /** `online` minus the count 7 days earlier; null without a sample within 30 minutes of that. */
  change7d: number | null
  /** `online` minus the count 30 days earlier; null without a sample within 30 minutes of that. */
  change30d: number | null
  /** Highest count of the last 24 hours; null without a sample. */
  peak24h: number | null
  /** Highest count ever; null without a sample. */
  peak: number | null
  /** First instant of `peak`. */
  peakAt: string | null
  /** 1: no title has more players now; equal ones share a rank. */
  rank: number | null
  /** Titles in the newest scrape. */
  titles: number
  /** Open lobbies at `onlineAt`; null if the source lacks them. */
  lobbies: number | null
  /** Players in these; null if the source lacks them. */
  lobbyPlayers: number | null
}

export type TopGame = {
  titleId: string
  name: string
  peak: number
  /** First instant of the peak. */
  peakAt: string
  /** Mean of the samples, one decimal. */
  average: number
  /** Number of samples. */
  samples: number
  /** UTC hours with a sample above 0. */
  activeHours: number
}

/** Games by peak, highest first. */
export type TopGames = TopGame[]

/** The achievements of a user. */
export type UserAchievements = {
  score: number
  /** The unlocked achievements, newest first. */
  achievements: UserAchievementsAchievement[]
  groups: UserAchievementsGroup[]
}

export type UserAchievementsAchievement = {
  id: number
  /** `hidden-<id>` for a hidden achievement. */
  key: string
  /** `Hidden Achievement` for a hidden achievement. */
  name: string
  /** "" for a hidden achievement. */
  description: string
  points: number
  is_hidden: boolean
  /** null for an achievement of the whole network. */
  game_title_id: string | null
  /** The `groupId` of its group. */
  category: string
  /** Absolute address of the picture of its game. */
  image_url: string | null
  earned: true
  unlocked_at: string
  /** Only of a hidden achievement that this user has unlocked. */
  revealed_name?: string
  /** Only of a hidden achievement that this user has unlocked. */
  revealed_description?: string
}

export type UserAchievementsGroup = {
  groupId: string
  displayName: string
  titleId: string | null
  /** Absolute address, "" when unknown. */
  imageUrl: string
  unlockedCount: number
  totalCount: number
  earnedPoints: number
  achievements: UserAchievementsGroupAchievement[]
}

export type UserAchievementsGroupAchievement = {
  id: number
  /** `hidden-<id>` for a hidden achievement. */
  key: string
  /** `Hidden Achievement` for a hidden achievement. */
  name: string
  /** "" for a hidden achievement. */
  description: string
  points: number
  is_hidden: boolean
  /** null for an achievement of the whole network. */
  game_title_id: string | null
  /** The `groupId` of its group. */
  category: string
  /** Absolute address of the picture of its game. */
  image_url: string | null
  earned: boolean
  unlocked_at: string | null
  /** Only of a hidden achievement that this user has unlocked. */
  revealed_name?: string
  /** Only of a hidden achievement that this user has unlocked. */
  revealed_description?: string
}

export type UserGame = {
  gameName: string
  /** null for a game that no title is known for. */
  titleId: string | null
  imageUrl: string | null
  totalMinutes: number
  /**
   * Epoch milliseconds of the newest sighting in the game; of a game known only from boards, of the newest change of an
   * entry.
   */
  lastPlayedAt: number
}

/** The games of the user. */
export type UserGames = {
  /** Last played first. */
  games: UserGame[]
  /** Whether a game is listed only because of an entry of the player on one of its boards. */
  leaderboardSupplement: boolean
  /** Whether presence has ever seen the user. */
  hasPlayTimeTracking: boolean
}

export type UserScore = {
  leaderboardId: number
  leaderboardName: string
  titleId: string
  gameName: string
  rank: number
  /** The raw text that the board shows. */
  rating: string
  /** Milliseconds; 0 for a score. */
  timeMs: number
  /** `M:SS.mmm`; "" for a score. */
  timeFormatted: string
  isTime: boolean
  /** When this entry last changed. */
  observedAt: string
}

/** The entries of the user on leaderboards. */
export type UserScores = {
  /** The name that is searched on boards. */
  playerName: string
  /** The linked gamertag, where there is one. */
  explicitConsoleGamertag: string | null
  /** No gamertag is linked and presence saw none: the username is searched. */
  usingSiteUsernameFallback: boolean
  /** Best rank first. */
  scores: UserScore[]
}
