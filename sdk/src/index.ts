/*
 * client   one method for each operation of the service, by its operationId
 * call     a request on its way: a promise of the data, with its headers and pages
 * answer   the body of a 200, typed by the contract
 * stream   events without an end: an iterator that reconnects and resumes
 * kept     an answer that is remembered with its ETag: at 304 it is the answer again
 */
export type * from './answers.js'
export type { Call, PageOptions, Result } from './call.js'
export { type GamenetClient, gamenetClient } from './client.js'
export type { DatasetFileParameters } from './datasets.js'
export { GamenetError } from './gamenet-error.js'
export type { CallOptions, ClientOptions } from './request.js'
export {
  ServiceAuth,
  ServiceAuthError,
  type ServiceAuthEvents,
  type ServiceAuthFriend,
  type ServiceAuthFriends,
  type ServiceAuthGame,
  type ServiceAuthGames,
  type ServiceAuthLogin,
  type ServiceAuthOptions,
  type ServiceAuthProfile,
  type ServiceAuthUser
} from './service-auth.js'
export type { StreamKind, StreamOptions, StreamParameters } from './stream.js'
