import { readFile } from 'node:fs/promises'
import { type ApiNeeds, addDashboard, addExample } from '@gamenet/api'
import type { FastifyInstance } from 'fastify'

/** The compiled browser SDK; its package stands two folders above. */
const SERVICE_AUTH = new URL(import.meta.resolve('@gamenet/sdk/service-auth.js'))
const EXAMPLE = new URL('../../example/', SERVICE_AUTH)

/** The browser SDK that the API gives away, asking this auth service. */
export async function serviceAuthFile(authUrl: string | undefined): Promise<NonNullable<ApiNeeds['serviceAuth']>> {
  return { module: await readFile(SERVICE_AUTH, 'utf8'), authUrl }
}

/** The pages that the API serves. */
export async function addPages(app: FastifyInstance, authUrl: string | undefined): Promise<void> {
  await addDashboard(app)
  await addExample(app, { folder: EXAMPLE, authUrl })
}
