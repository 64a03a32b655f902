import type { MessagePort, Worker } from 'node:worker_threads'
import { errorMessage } from '../values/error-message.js'
import { Failure } from '../values/failure.js'

/*
 * Calls between two threads. Each end offers methods and calls those of the other end by name. Arguments and results
 * are copied by structured clone; an error crosses as its name, message, cause and those of its fields that are text,
 * numbers or booleans.
 */

type Methods = Readonly<Record<string, (...given: never[]) => unknown>>
type Result<Method> = Method extends (...given: never[]) => infer Returned ? Awaited<Returned> : never

export type Calls<Theirs extends Methods> = {
  /** Resolves with the method's result; rejects with its error, or with the reason of {@link Calls.end}. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    ...given: Parameters<Theirs[Name]>
  ): Promise<Result<Theirs[Name]>>
  /** Calls a method without waiting for its result. Its error is thrown in the other thread. */
  notify<Name extends keyof Theirs & string>(name: Name, ...given: Parameters<Theirs[Name]>): void
  /** Rejects the calls under way and all later ones. */
  end(reason: Error): void
}

/** An error as it crosses between threads. */
export type PostedError = {
  readonly name: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly cause?: PostedError
}

type Message =
  | { readonly name: string; readonly given: readonly never[]; readonly id?: number }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: PostedError }

/** Offers `ours` to the other end of `port` and calls its methods. `errorOf` restores the classes of its errors. */
export function openCalls<Theirs extends Methods>(
  port: MessagePort | Worker,
  ours: Methods,
  {
    errorOf = restoredError,
    onBusy = () => undefined
  }: {
    readonly errorOf?: (posted: PostedError) => Error
    /** Called when the first call of several begins and when the last one has ended. */
    readonly onBusy?: (isBusy: boolean) => void
  } = {}
): Calls<Theirs> {
  const waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  let calls = 0
  let endReason: Error | undefined
  const post = (message: Message) => port.postMessage(message)
  const settle = (id: number) => {
    const caller = waiting.get(id)
    if (waiting.delete(id) && waiting.size === 0) onBusy(false)
    return caller
  }
  const answer = async (id: number, run: () => unknown) => {
    try {
      post({ id, result: await run() })
    } catch (error) {
      post({ id, error: postedError(error) })
    }
  }
  port.on('message', (message: Message) => {
    if ('name' in message) {
      const run = () => ours[message.name]?.(...message.given)
      if (message.id === undefined) run()
      else void answer(message.id, run)
    } else if ('error' in message) settle(message.id)?.reject(errorOf(message.error))
    else settle(message.id)?.resolve(message.result as never)
  })
  return {
    call: (name, ...given) =>
      new Promise((resolve, reject) => {
        if (endReason !== undefined) throw endReason
        calls += 1
        post({ name, given, id: calls })
        waiting.set(calls, { resolve, reject })
        if (waiting.size === 1) onBusy(true)
      }),
    notify: (name, ...given) => post({ name, given }),
    end: (reason) => {
      endReason ??= reason
      for (const id of [...waiting.keys()]) settle(id)?.reject(endReason)
    }
  }
}

/**
 * {@link openCalls} to a worker thread. The thread keeps the process alive only during a call. Calls reject with the
 * thread's error when it crashes, and with a `thread_exited` of the message `exited` when it exits.
 */
export function callThread<Theirs extends Methods>(
  worker: Worker,
  ours: Methods,
  { exited }: { readonly exited: string }
): Calls<Theirs> {
  const calls = openCalls<Theirs>(worker, ours, {
    onBusy: (isBusy) => (isBusy ? worker.ref() : worker.unref())
  })
  worker.on('error', (error: Error) => calls.end(error))
  worker.on('exit', () => calls.end(new Failure('thread_exited', exited)))
  return calls
}

function postedError(error: unknown): PostedError {
  if (!(error instanceof Error)) return { name: 'Error', message: errorMessage(error), fields: {} }
  const isPlain = ([, value]: [string, unknown]) => ['string', 'number', 'boolean'].includes(typeof value)
  const { name, message, cause } = error
  const fields = Object.fromEntries(Object.entries(error).filter(isPlain))
  return { name, message, fields, ...(cause === undefined ? {} : { cause: postedError(cause) }) }
}

/** A plain `Error` with the name, the fields and the cause of the posted one. */
export function restoredError({ name, message, fields, cause }: PostedError): Error {
  const error = new Error(message, cause === undefined ? {} : { cause: restoredError(cause) })
  return Object.assign(error, fields, name === 'Error' ? {} : { name })
}
