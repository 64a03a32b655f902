/** Gives a slot back; further calls do nothing. */
export type Release = () => void

/** Counts how much of something each address has at one time. Addresses are those of `ClientAddresses`. */
export class SlotsPerAddress {
  /** 0: no limit. */
  readonly max: number
  readonly #taken = new Map<string, number>()

  constructor(max: number) {
    this.max = max
  }

  /** Takes a slot; returns undefined if the address has all of its slots. Without an address no limit applies. */
  take(address: string | undefined): Release | undefined {
    if (address === undefined || this.max === 0) return () => undefined
    const taken = this.#taken.get(address) ?? 0
    if (taken >= this.max) return undefined
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
