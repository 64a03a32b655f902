import type { Definition } from './tables/replacing-table.js'

const POSITION = ['epoch', 'partition', 'offset'] as const
const by = (column: string) => (row: Readonly<Record<string, unknown>>) => row[column] as number
const event: Definition = { key: POSITION }

/** The tables of bookkeeping that the simulator has, with their sort keys and versions. */
export const BOOKKEEPING: Readonly<Record<string, Definition>> = {
  checkpoint: { key: ['name', 'epoch', 'partition'], version: by('next') },
  dead_letter: { key: ['topic', ...POSITION], version: by('stored_at') },
  dead_letter_decision: { key: ['topic', ...POSITION], version: by('decided_at') },
  data_change: { key: ['version', 'projection', 'key', 'from_ms', 'to_ms'] },
  generation_pointer: { key: ['owner'], version: by('version') },
  generation_statement: { key: ['projection', 'generation', 'version', 'hash'] },
  rebuild: { key: ['id'], version: by('version') },
  rebuild_owner: { key: ['id'], version: by('seen_at') },
  late_batch: { key: ['id'] },
  late_batch_taken: { key: ['id', 'taker'] }
}

/** The tables that have generations. */
export const TABLES: Readonly<Record<string, Definition>> = {
  import_run: { key: ['import_id'], version: by('position') },
  import_retraction: { key: ['import_id'], version: by('position') },
  event_title: event,
  event_title_count: event,
  event_leaderboard: event,
  event_leaderboard_entry: event,
  event_rating: event,
  event_import_run: event,
  event_import_retraction: event,
  title_count: { key: ['title_id', 'ts'], version: by('position') },
  title_count_hour: { key: ['title_id', 'hour'], version: by('position') },
  title_latest: { key: ['imported', 'title_id'], version: by('version') },
  leaderboard: { key: ['title_id', 'leaderboard_id', 'ts'], version: by('position') },
  leaderboard_history: {
    key: ['title_id', 'leaderboard_id', 'player', 'occurrence', 'ts', 'content'],
    version: (row) => -(row.position as number)
  },
  leaderboard_entry: { key: ['title_id', 'leaderboard_id', 'player', 'occurrence'], version: by('version') },
  leaderboard_change: { key: ['ts', 'title_id', 'leaderboard_id', ...POSITION], version: by('version') },
  leaderboard_feed: {
    key: ['recorded_epoch', 'recorded_partition', 'recorded_offset', ...POSITION],
    version: by('version')
  },
  rank_reached: { key: ['title_id', 'leaderboard_id'], version: by('version') },
  record_history: { key: ['title_id', 'leaderboard_id'], version: by('version') },
  rating: { key: ['user_key', 'rater_key'], version: by('revision') }
}
