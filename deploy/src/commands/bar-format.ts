import cliProgress from 'cli-progress'

/**
 * A line as this format says, its bar as long as the rest of the line leaves room for. A terminal cuts off what is too
 * long for it, and what stands last, the time that is left, is what people look for.
 */
export function barFormat(format: string): cliProgress.GenericFormatter {
  return (options, params, payload) => {
    const withBar = (barsize: number) =>
      cliProgress.Format.Formatter({ ...options, format, barsize }, params, payload).trimEnd()
    // The last column is left free: some terminals wrap when it is written.
    const room = params.maxWidth - 1
    const bare = withBar(0)
    if (bare.length > room) return `…${bare.slice(1 - room)}`
    return withBar(Math.min(options.barsize ?? 40, room - bare.length))
  }
}
