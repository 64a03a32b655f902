import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  actions,
  addExample,
  addSdkPackage,
  addServiceAuth,
  buildApp,
  type ChatSettings,
  catalogCache,
  endpoints
} from '@gamenet/api'
import { foldRecords } from '@gamenet/projector'
import { Refusal, withServing } from '@gamenet/schemas'
import { scrapePeriods } from '../config.js'
import { fileFailure } from '../data-directory/file-failure.js'
import { engineFailure, noteDamage } from '../stores/engine-failures.js'
import { ERASED_CHANNEL } from '../stores/ledger.js'
import { VERSION } from '../version.js'
import type { Needs } from './dependencies.js'
import { listen, publicUrl } from './listen.js'
import { endpointsOf, readQuestions } from './questions.js'

const POLL_MS = 250
/** The compiled browser SDK, two folders above this one. */
const SERVICE_AUTH = new URL('service-auth.js', import.meta.resolve('@gamenet/sdk'))
const SDK = new URL('../../', SERVICE_AUTH)
const EXAMPLE = new URL('example/', SDK)

/** Starts the API and returns its address. */
export async function openApi(needs: Needs): Promise<string> {
  const {
    config,
    engines,
    tables,
    registry,
    logger,
    dataVersions,
    readSide,
    readiness,
    authUrl,
    disposers,
    damageMet,
    clients,
    connectionLimit
  } = needs
  // With embedded tables, the projector of this process reports every change; on a server the table is polled.
  if (config.CLICKHOUSE_URL === undefined) await dataVersions.refresh()
  else await dataVersions.start(POLL_MS)
  const { postgres } = engines
  if (postgres !== undefined) disposers.add(dataVersions.follow(postgres), (unfollow) => unfollow())
  const questions = await readQuestions(config.QUESTIONS_DIR, withServing(tables, dataVersions.serving))
  const app = await buildApp(
    {
      endpoints: [...endpoints, ...endpointsOf(questions)],
      actions,
      tables,
      ...(postgres === undefined ? {} : { writes: postgres }),
      people: {
        authUrl,
        writesPerMinute: config.WRITES_PER_MINUTE,
        sessionChecksPerMinute: config.SESSION_CHECKS_PER_MINUTE,
        chat: chatOf(needs),
        sampleUser: needs.demo?.person
      },
      clients,
      limits: {
        connectionsMax: connectionLimit.connectionsMax,
        connectionsPerAddress: config.CONNECTIONS_PER_ADDRESS,
        streamsPerAddress: config.STREAMS_PER_ADDRESS
      },
      dataVersions,
      positions: readSide.positions,
      foldRecords,
      epoch: engines.log.epoch,
      catalog: catalogCache({ tables, versionOf: (dependency) => dataVersions.versionOf(dependency) }),
      onDrop: (drop) => {
        if (postgres !== undefined) disposers.add(postgres.listen(ERASED_CHANNEL, drop, drop), (unlisten) => unlisten())
      },
      ...addressesOf(needs),
      datasets: {
        directory: join(config.DATA_DIR, 'datasets'),
        requireSpace: () => engines.disk.requireSpace(0, 'A file of a dataset')
      },
      exports: {
        directory: join(config.DATA_DIR, 'exports'),
        bytesMax: config.EXPORT_BYTES_MAX,
        perAddress: config.EXPORTS_PER_ADDRESS,
        requireSpace: (bytes) => engines.disk.requireSpace(bytes, 'An answer as a file')
      },
      version: VERSION,
      registry,
      logger,
      scraped: { periodSeconds: scrapePeriods(config), historyPercent: needs.operations.historyPercent },
      ready: readiness.ready
    },
    async (app) => {
      await addSdkPackage(app, { folder: SDK, version: VERSION })
      await addServiceAuth(app, { module: await readFile(SERVICE_AUTH, 'utf8'), authUrl })
      await addExample(app, { folder: EXAMPLE, authUrl, version: VERSION })
      app.addHook('onError', async (_request, _reply, error: unknown) => {
        if (!(error instanceof Refusal && error.code === 'data_damaged')) return
        // Files of datasets have a line of their own.
        const file = fileFailure(error.cause, config.DATA_DIR)
        noteDamage(damageMet, file ?? engineFailure(error, engines.ownsTables))
      })
    }
  )
  disposers.add(app, () => app.close())
  return await listen(app, config.HOST, config.PORT, 'PORT')
}

function addressesOf({ config, demo }: Needs) {
  const hasPublicUrl = config.PUBLIC_URL !== undefined
  return { publicUrl: publicUrl(config), hasPublicUrl, upstreamUrl: config.UPSTREAM_URL ?? demo?.url }
}

/** Returns the configured chat platform, else the demo's. */
function chatOf({ config, demo }: Needs): ChatSettings | undefined {
  const { CHAT_API_URL: apiUrl, CHAT_API_TOKEN: token, CHAT_HOSTS: hosts = [], CHAT_AVATAR_URL: avatarUrl } = config
  if (apiUrl !== undefined) return { apiUrl, token, hosts, avatarUrl }
  return demo?.chat === undefined ? undefined : { ...demo.chat, apiUrl: demo.chat.url }
}
