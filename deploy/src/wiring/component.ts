import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { type Config, UsageError } from '../config.js'
import { Disposers } from './disposers.js'

/** The role of a process. `offline`: a command runs its operations, and the process ends. */
export type Role = 'all' | 'ingest' | 'projector' | 'api' | 'offline'

/** Passed to every component. */
export type ProcessContext = {
  readonly config: Config
  readonly role: Role
  readonly threadPoolSize: number
  readonly logger: Logger
  readonly registry: Registry
  /** For resources of a component besides its part; closed after the part. */
  readonly disposers: Disposers
}

/** One component of a service: which processes have it, how it is opened and closed. */
export type Component<Needs, Part> = {
  readonly roles: readonly Role[]
  /** False leaves the component out although the role has it. */
  when?(config: Config, role: Role): boolean
  open(needs: Needs): Promise<Part> | Part
  close?(part: NonNullable<Part>): Promise<unknown> | unknown
}

/** A component per part, in the order of opening. */
export type Components<Parts> = {
  readonly [Name in keyof Parts]-?: Component<ProcessContext & Parts, Parts[Name]>
}

/** Returns whether a process of this role opens the component. */
export function runs(
  { roles, when }: Pick<Component<never, never>, 'roles' | 'when'>,
  { config, role }: Pick<ProcessContext, 'config' | 'role'>
): boolean {
  return roles.includes(role) && (when?.(config, role) ?? true)
}

/**
 * Opens the role's components one after another. A component can use the parts above it; parts that the role does not
 * have are undefined. If one cannot be opened, the open ones are closed again.
 */
export async function openComponents<Parts extends object>(
  components: Components<Parts>,
  context: Omit<ProcessContext, 'disposers'>
): Promise<{ readonly parts: Parts; close(): Promise<void> }> {
  requireServers(context.config, context.role)
  const disposers = new Disposers()
  const parts = {} as Parts
  try {
    for (const name of Object.keys(components) as (keyof Parts)[]) {
      const component = components[name]
      if (!runs(component, context)) continue
      const part = (await component.open({ ...context, disposers, ...parts })) as Parts[keyof Parts]
      parts[name] = part
      if (part !== undefined) disposers.add(part, () => component.close?.(part as NonNullable<typeof part>))
    }
    return { parts, close: () => disposers.close() }
  } catch (error) {
    await disposers.close()
    throw error
  }
}

/** Refuses embedded engines for a role that shares them with other processes. */
export function requireServers(config: Config, role: Role): void {
  if (role === 'all' || role === 'offline') return
  const missing = [
    ...(config.KAFKA_BROKERS === undefined && role !== 'api' ? ['KAFKA_BROKERS'] : []),
    ...(config.CLICKHOUSE_URL === undefined ? ['CLICKHOUSE_URL'] : []),
    ...(config.POSTGRES_URL === undefined ? ['POSTGRES_URL'] : [])
  ]
  if (missing.length === 0) return
  throw new UsageError(
    `gamenet ${role} shares its engines with other processes and needs ${missing.join(', ')}; embedded engines belong to one process: gamenet start.`
  )
}
