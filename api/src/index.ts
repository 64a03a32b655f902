export { changedAnswers } from './answers/changed-answers.js'
export { DataVersions } from './answers/data-versions.js'
export type { AnswerContext, Dependency, Endpoint } from './answers/endpoint.js'
export { type ApiNeeds, buildApp } from './app.js'
export { datasets } from './datasets/datasets.js'
export { type DatasetPosition, datasetPosition } from './datasets/position.js'
export {
  type RevisionFile,
  revisionFiles,
  type UnreadableDescription,
  unusableNames
} from './datasets/revision-files.js'
export type { Readiness } from './http/health.js'
export { limitConnections } from './http/open-connections.js'
export { createHttpServer, requestIds } from './http/server.js'
export { addPlainErrorsPage } from './pages/errors.js'
export { addExample } from './pages/example.js'
export { addSdkPackage } from './pages/sdk-package.js'
export { addServiceAuth } from './pages/service-auth.js'
export { catalogCache } from './queries/catalog.js'
export type { QuestionFault } from './questions/question-file.js'
export { questionEndpoints } from './questions/questions.js'
export type { StreamedTables } from './read-tables.js'
export type { ChatSettings } from './remote/chat-platform.js'
export { sendError } from './reply/errors.js'
export { type ClientAddresses, clientAddresses } from './request/client-address.js'
export { actions, endpoints } from './routes/endpoints.js'
