import type { FileHandle } from 'node:fs/promises'
import { Refusal } from '@gamenet/schemas'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { REVALIDATED } from '../reply/headers.js'
import { namedTag, permitsTag } from '../request/etag.js'
import { partOf } from '../request/range.js'
import { DatasetFiles, type DatasetFilesNeeds, refuseUnusable } from './dataset-files.js'
import { type Dataset, datasets } from './datasets.js'
import type { DatasetList, FileRevision, StoredRevision } from './manifest.js'
import { DATASET_FILE_PATH, DATASETS_PATH, EXCLUDED, PARQUET } from './paths.js'
import { monthSpan } from './period.js'

const IMMUTABLE = 'public, max-age=31536000, immutable'
const FILE = /^(\d{4}-\d{2}|newest)(?:\.([0-9a-f]{16}))?\.parquet$/

/**
 * Adds the list of datasets and their files. A request for the list starts to make the missing files of closed months.
 */
export function addDatasets(
  app: FastifyInstance,
  needs: Omit<DatasetFilesNeeds, 'signal'> & { readonly logger: Pick<FastifyBaseLogger, 'warn'> }
): void {
  const closing = new AbortController()
  const files = new DatasetFiles({ ...needs, signal: closing.signal })
  let making: Promise<void> | undefined
  app.addHook('onReady', () => files.removeUnlisted())
  app.addHook('onClose', async () => {
    closing.abort(new Error('the service is stopping'))
    await making
  })
  app.get(DATASETS_PATH, async (_request, reply) => {
    const { list, missing } = await listed(files).catch(refuseUnusable)
    if (making === undefined) {
      making = makeAll(files, missing, closing.signal, needs.logger).finally(() => {
        making = undefined
      })
    }
    return reply.header('Cache-Control', 'no-cache').send(list)
  })
  app.get<{ Params: { dataset: string; file: string } }>(DATASET_FILE_PATH, async (request, reply) => {
    const { dataset, period, digest } = await requestedFile(files, request.params).catch(refuseUnusable)
    const opened = await files.open(dataset, period, digest).catch(refuseUnusable)
    if (opened === undefined) throw new Refusal('dataset_file_unknown', [`${dataset.name}/${request.params.file}`])
    const headers = {
      'Cache-Control': digest === undefined ? REVALIDATED : IMMUTABLE,
      'Content-Disposition': `attachment; filename="${dataset.name}-${period}.parquet"`
    }
    return await sendFile(request, reply.headers(headers), opened)
  })
}

type Missing = { readonly dataset: Dataset; readonly period: string }

async function listed(files: DatasetFiles): Promise<{ list: DatasetList; missing: readonly Missing[] }> {
  const missing: Missing[] = []
  const list: DatasetList = { datasets: [], excluded: EXCLUDED }
  for (const dataset of datasets) {
    const { name, meaning, columns } = dataset
    const entries: DatasetList['datasets'][number]['files'] = []
    for (const { period, isClosed, newest, earlier, isMissing } of await files.list(dataset)) {
      if (isMissing) missing.push({ dataset, period })
      entries.push({
        period,
        url: `${DATASETS_PATH}/${name}/${period}.parquet`,
        isClosed,
        newest: newest === undefined ? null : shownRevision(dataset, newest),
        earlier: earlier.map((each) => shownRevision(dataset, each))
      })
    }
    list.datasets.push({ name, meaning, columns: [...columns], files: entries })
  }
  return { list, missing }
}

/** A file that cannot be made is logged, and the others are made; the next request for the list tries again. */
async function makeAll(
  files: DatasetFiles,
  missing: readonly Missing[],
  signal: AbortSignal,
  logger: Pick<FastifyBaseLogger, 'warn'>
): Promise<void> {
  for (const { dataset, period } of missing) {
    if (signal.aborted) return
    try {
      const opened = await files.open(dataset, period)
      await opened?.handle.close()
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ err: error, dataset: dataset.name, period }, 'a file of a dataset cannot be made')
    }
  }
}

function shownRevision(dataset: Dataset, { file, ...revision }: StoredRevision): FileRevision {
  return { ...revision, url: `${DATASETS_PATH}/${dataset.name}/${file}` }
}

async function requestedFile(
  files: DatasetFiles,
  { dataset: name, file }: { readonly dataset: string; readonly file: string }
): Promise<{ readonly dataset: Dataset; readonly period: string; readonly digest: string | undefined }> {
  const dataset = datasets.find((each) => each.name === name)
  if (dataset === undefined) throw new Refusal('dataset_unknown', [name, datasets.map((each) => each.name).join(', ')])
  const [, period = '', digest] = FILE.exec(file) ?? []
  const isNewest = period === 'newest'
  if (isNewest !== (dataset.files === 'newest') || (!isNewest && monthSpan(period) === undefined))
    throw new Refusal('dataset_file_unknown', [`${name}/${file}`])
  if (digest === undefined && !(await files.periods(dataset)).includes(period))
    throw new Refusal('dataset_file_unknown', [`${name}/${file}`])
  return { dataset, period, digest }
}

/** Sends a file, a range of it, or 304. */
async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { revision, handle }: { readonly revision: StoredRevision; readonly handle: FileHandle }
): Promise<FastifyReply> {
  const { sha256, madeAt, bytes } = revision
  const etag = `"${sha256}"`
  const modified = new Date(madeAt).toUTCString()
  void reply.headers({ ETag: etag, 'Last-Modified': modified, 'Accept-Ranges': 'bytes' })
  const { headers } = request
  try {
    if (!isPermitted(headers, etag, modified)) throw new Refusal('precondition_failed')
    if (isNotModified(headers, sha256, modified)) {
      await handle.close()
      return reply.code(304).send()
    }
    const { status, first, last, headers: part } = partOf(request.raw, reply.raw, bytes, [etag, modified])
    void reply.code(status).headers({ 'Content-Type': PARQUET, ...part })
    return reply.send(handle.createReadStream({ start: first, end: last }))
  } catch (refusal) {
    await handle.close()
    for (const name of ['ETag', 'Last-Modified', 'Content-Disposition']) void reply.removeHeader(name)
    throw refusal
  }
}

/** `If-Unmodified-Since` counts only without `If-Match` (RFC 9110, 13.2.2); an invalid date is ignored. */
function isPermitted(headers: FastifyRequest['headers'], etag: string, modified: string): boolean {
  const { 'if-match': tags, 'if-unmodified-since': since = '' } = headers
  return tags === undefined ? !(Date.parse(since) < Date.parse(modified)) : permitsTag(tags, etag)
}

function isNotModified(headers: FastifyRequest['headers'], identity: string, modified: string): boolean {
  const { 'if-none-match': tags, 'if-modified-since': since } = headers
  if (tags !== undefined) return namedTag(tags, identity) !== undefined
  return since !== undefined && Date.parse(since) >= Date.parse(modified)
}
