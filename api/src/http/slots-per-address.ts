import { Refusal } from '@gamenet/schemas'

/** Gives a slot back; further calls do nothing. */
export type Release = () => void

/** Counts how much of something each address has at one time. Addresses are those of `ClientAddresses`. */
export class SlotsPerAddress {
  readonly #taken = new Map<string, number>()

  /** @param max 0: no limit */
  constructor(
    readonly max: number,
    readonly refusal: 'exports_per_address' | 'streams_per_address',
    readonly retryAfterSeconds: number
  ) {}

  /** Takes a slot; throws the refusal of an address that has all of its slots. Without an address no limit applies. */
  take(address: string | undefined): Release {
    const { max, refusal, retryAfterSeconds } = this
    if (address === undefined || max === 0) return () => undefined
    const taken = this.#taken.get(address) ?? 0
    if (taken >= max) throw new Refusal(refusal, [String(max)], { retryAfterSeconds })
    this.#taken.set(address, taken + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const left = (this.#taken.get(address) ?? 1) - 1
      if (left === 0) this.#taken.delete(address)
      else this.#taken.set(address, left)
    }
  }
}
