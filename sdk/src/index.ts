/*
 * client   one method for each operation of the service, by its operationId
 * answer   the body of a 200, typed by the contract
 * kept     an answer that is remembered with its ETag: at 304 it is the answer again
 */
export type * from './answers.js'
export { type GamenetClient, gamenetClient } from './client.js'
export { GamenetError } from './gamenet-error.js'
export type { CallOptions, ClientOptions } from './request.js'
