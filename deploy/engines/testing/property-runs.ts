const CAMPAIGN_FACTOR = 30
let isCampaign = false

/** How a property is tried: on the same values every time; in a campaign on {@link CAMPAIGN_FACTOR} times as many, other ones each time. */
export function runs(numRuns: number, seed = 1): { readonly numRuns: number; readonly seed?: number } {
  return isCampaign ? { numRuns: numRuns * CAMPAIGN_FACTOR } : { numRuns, seed }
}

/** Makes a campaign of the tests that are imported from now on. */
export function beginCampaign(): void {
  isCampaign = true
}
