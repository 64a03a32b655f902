/** All refusals of the service. On the wire only the sentence: {"error": "…"}. `%s` takes the details in order. */
export const refusals = {
  request_invalid: { status: 400, message: '%s.' },
  request_malformed: { status: 400, message: 'The request is not valid HTTP/1.1.' },
  host_invalid: { status: 400, message: 'The Host header is not exactly one host with an optional port.' },
  host_missing: { status: 400, message: 'The request names no host; HTTP/1.1 asks for exactly one Host header.' },
  json_malformed: { status: 400, message: 'The body is not valid JSON.' },
  body_encoding_invalid: { status: 400, message: 'The body is not valid UTF-8.' },
  query_encoding_invalid: { status: 400, message: 'The query is not valid percent-encoded UTF-8.' },
  path_encoding_invalid: { status: 400, message: 'The path is not valid percent-encoded UTF-8.' },
  title_id_malformed: { status: 400, message: 'titleId must be 8 hexadecimal digits; got %s.' },
  window_invalid: { status: 400, message: '%s.' },
  answer_too_large: { status: 400, message: '%s.' },
  session_key_missing: {
    status: 400,
    message: 'A session key is needed: as header X-Session-Key, or as text in the field sessionKey of the body.'
  },
  session_invalid: { status: 401, message: 'The session has ended or never was; sign in again.' },
  profile_not_owned: { status: 403, message: 'A profile is edited by its owner alone; the session is not of %s.' },
  username_unstable: {
    status: 403,
    message:
      'The username %s has characters that only look like others; change it at the auth service, then sign in again.'
  },
  chat_link_missing: {
    status: 403,
    message: 'social_links needs a chat profile that is linked and verified; give chat_profile_url first.'
  },
  chat_profile_unknown: { status: 400, message: 'chat_profile_url %s.' },
  chat_away: { status: 502, message: 'The chat platform cannot be asked at the moment; nothing was changed.' },
  rating_of_self: { status: 400, message: 'Nobody rates their own profile.' },
  title_unknown: { status: 404, message: 'No title %s is known.' },
  leaderboard_unknown: { status: 404, message: 'No leaderboard %s of %s is known.' },
  leaderboard_not_yet_seen: {
    status: 404,
    message: 'Leaderboard %s of %s was first seen at %s; there is no board as of %s.'
  },
  instant_in_future: { status: 400, message: '%s lies in the future: %s; ask for an instant up to now.' },
  cursor_invalid: {
    status: 400,
    message: 'after is no cursor of this feed: %s; begin with after=start, or follow the Link header of a page.'
  },
  user_unknown: { status: 404, message: 'No user %s is known.' },
  game_unknown: { status: 404, message: 'No game %s is known.' },
  path_unknown: { status: 404, message: 'There is nothing at %s; /docs lists what there is.' },
  method_not_allowed: { status: 405, message: '%s is not answered here; allowed: %s.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  body_too_large: { status: 413, message: 'The body is larger than %s bytes.' },
  uri_too_long: { status: 414, message: 'The path or query is longer than %s characters.' },
  media_type_unsupported: { status: 415, message: 'The body must be application/json, not compressed; got %s.' },
  expectation_failed: { status: 417, message: 'The only expectation that is met is 100-continue.' },
  write_budget_spent: {
    status: 429,
    message: 'At most %s edits and ratings a minute are taken of one user; ask again in %s s.'
  },
  headers_too_large: { status: 431, message: 'The request headers are too large.' },
  internal: { status: 500, message: 'The service failed; its log has the cause under request %s.' },
  not_ready: { status: 503, message: 'The service is not ready: %s.' },
  auth_away: { status: 503, message: 'The auth service cannot be asked at the moment; ask again shortly.' },
  forgetting_under_way: { status: 503, message: 'This user is being forgotten as they asked; ask again shortly.' },
  engine_busy: { status: 503, message: 'Too many questions at once; ask again shortly.' },
  table_incomplete: {
    status: 503,
    message: 'Rows of the table %s were lost and are being made again from the log; ask again later.'
  },
  data_damaged: {
    status: 503,
    message: 'What this needs is damaged on the disk of the service; its operator can repair it (gamenet verify).'
  },
  disk_full: {
    status: 503,
    message: 'The disk of the service is full, and nothing was stored; ask again when its operator has freed space.'
  },
  engine_away: { status: 503, message: 'The tables cannot be reached at the moment; ask again shortly.' }
} as const satisfies Record<string, { status: number; message: string }>

export type RefusalCode = keyof typeof refusals

/** An expected error: thrown anywhere, answered in one place. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly status: number
  /** Seconds until a retry makes sense, for 429 and 503. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: RefusalCode,
    details: readonly string[] = [],
    options: { retryAfterSeconds?: number; cause?: unknown } = {}
  ) {
    let next = 0
    super(
      refusals[code].message.replace(/%s/g, () => details[next++] ?? ''),
      { cause: options.cause }
    )
    this.name = 'Refusal'
    this.code = code
    this.status = refusals[code].status
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}
