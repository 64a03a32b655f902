import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { type Config, UsageError } from '../config.js'
import { Disposers } from './disposers.js'

/**
 * The role of a process that runs one command. `offline`: the command runs its operations, and the process ends.
 * `verify`: so does a command that neither loads nor repairs anything.
 */
export type CommandRole = 'offline' | 'verify'

/** The role of a process. */
export type Role = 'all' | 'ingest' | 'projector' | 'api' | CommandRole

/** Returns whether a process of this role runs one command. */
export const isCommand = (role: Role): boolean => role === 'offline' || role === 'verify'

/** Passed to every component. */
export type ProcessContext = {
  readonly config: Config
  readonly role: Role
  /** Whether the operator accepts a PostgreSQL that is older than the tables. */
  readonly acceptsOlder: boolean
  readonly logger: Logger
  readonly registry: Registry
  /** For resources of a component in addition to its value; closed after the value. */
  readonly disposers: Disposers
}

/** One component of a service: which processes have it, how it is opened and closed. */
export type Component<Needs, Value> = {
  readonly roles: readonly Role[]
  /** False leaves the component out although the role has it. */
  when?(config: Config, role: Role): boolean
  open(needs: Needs): Promise<Value> | Value
  close?(value: NonNullable<Value>): Promise<unknown> | unknown
}

/** A component per value, in the order of opening. */
export type Components<Values> = {
  readonly [Name in keyof Values]-?: Component<ProcessContext & Values, Values[Name]>
}

/** Returns whether a process of this role opens the component. */
export function runs(
  { roles, when }: Pick<Component<never, never>, 'roles' | 'when'>,
  { config, role }: Pick<ProcessContext, 'config' | 'role'>
): boolean {
  return roles.includes(role) && (when?.(config, role) ?? true)
}

/**
 * Opens the role's components one after another. A component can use the values above it; values that the role does not
 * have are undefined. If one cannot be opened, the open ones are closed again.
 */
export async function openComponents<Values extends object>(
  components: Components<Values>,
  context: Omit<ProcessContext, 'disposers'>
): Promise<{ readonly values: Values; close(): Promise<void> }> {
  requireServers(context.config, context.role)
  const disposers = new Disposers()
  const values = {} as Values
  try {
    for (const name of Object.keys(components) as (keyof Values)[]) {
      const component = components[name]
      if (!runs(component, context)) continue
      const value = (await component.open({ ...context, disposers, ...values })) as Values[keyof Values]
      values[name] = value
      if (value !== undefined) disposers.add(value, () => component.close?.(value as NonNullable<typeof value>))
    }
    return { values, close: () => disposers.close() }
  } catch (error) {
    await disposers.close()
    throw error
  }
}

/** Refuses embedded engines for a role that shares them with other processes. */
export function requireServers(config: Config, role: Role): void {
  if (role === 'all' || isCommand(role)) return
  const missing = [
    ...(config.KAFKA_BROKERS === undefined && role !== 'api' ? ['KAFKA_BROKERS'] : []),
    ...(config.CLICKHOUSE_URL === undefined ? ['CLICKHOUSE_URL'] : []),
    ...(config.POSTGRES_URL === undefined ? ['POSTGRES_URL'] : [])
  ]
  if (missing.length === 0) return
  throw new UsageError(
    `gamenet ${role} shares its engines with other processes and needs ${missing.join(', ')}; embedded engines ` +
      `belong to one process: gamenet start.`
  )
}
