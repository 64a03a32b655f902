const CAMPAIGN_FACTOR = 60
let isCampaign = false

/**
 * Returns the options of a property: fixed values in tests; in a campaign {@link CAMPAIGN_FACTOR} times as many,
 * different each time.
 */
export function runs(numRuns: number, seed = 1): { readonly numRuns: number; readonly seed?: number } {
  return isCampaign ? { numRuns: numRuns * CAMPAIGN_FACTOR } : { numRuns, seed }
}

/** Turns the tests imported from now on into a campaign. */
export function beginCampaign(): void {
  isCampaign = true
}
