import type { Operation, Store, StoreView } from '@gamenet/projector/internals'
import type { AnyOperation } from './operations/implementation.js'

/** An operation before it reaches the tables. */
export type Call = {
  readonly operation: AnyOperation
  readonly input: readonly unknown[]
  readonly view: StoreView
  /** The store that executes it. */
  readonly base: Store
  /** Executes it. */
  next(): Promise<unknown>
}

/** Returns a store that passes every operation to `pass`, in every view. */
export function intercepted(base: Store, pass: (call: Call) => Promise<unknown>, view: StoreView = {}): Store {
  return {
    do: <Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input) =>
      pass({ operation, input, view, base, next: () => base.do(operation, ...input) }) as Promise<Result>,
    sync: (tables) => base.sync(tables),
    with: (more) => intercepted(base.with(more), pass, { ...view, ...more })
  }
}
