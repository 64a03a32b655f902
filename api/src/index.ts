export type { Parameters, WriteSide, WriteTransactions } from '@gamenet/schemas'
export { DataVersions } from './answers/data-versions.js'
export type {
  Action,
  AnswerContext,
  Dependency,
  Endpoint
} from './answers/endpoint.js'
export { type ApiNeeds, buildApp } from './app.js'
export { type Dataset, datasets } from './datasets/datasets.js'
export { type DatasetPosition, datasetPosition } from './datasets/position.js'
export {
  type RevisionFile,
  revisionFiles,
  type UnreadableDescription,
  unusableNames
} from './datasets/revision-files.js'
export type { Readiness } from './http/health.js'
export { limitConnections } from './http/open-connections.js'
export { addErrorsPage } from './http/pages/errors.js'
export { addExample } from './http/pages/example.js'
export { sendError } from './http/reply/errors.js'
export { type ClientAddresses, clientAddresses } from './http/request/client-address.js'
export { createHttpServer, requestIds } from './http/server.js'
export { catalogCache } from './queries/catalog.js'
export type { QuestionFault } from './questions/question-file.js'
export { QUESTION_TABLES, questionEndpoints } from './questions/questions.js'
export type { ReadTables, StreamedTables } from './read-tables.js'
export type { ChatSettings } from './remote/chat-platform.js'
export { actions, endpoints } from './routes/endpoints.js'
