import { chance, chanceBelow, stream } from './chance.js'
import type { CatalogueTitle } from './samples.js'

/** The constant properties of one title of the demo network. */
export type DemoTitle = {
  readonly titleId: string
  /** Its number in streams of chance, and its index in the list of {@link chooseTitles}: 0 is the most played. */
  readonly index: number
  readonly name: string
  readonly subtitle: string
  /** Two letters of the publisher and a number, both from the id: `4d53004b` is `MS-075`. */
  readonly productCode: string
  /** Live-aware, matchmaking, leaderboards, user content: the order of the page's icons. */
  readonly features: readonly [boolean, boolean, boolean, boolean]
  /** Its share of the players, before cycles and random changes; only ratios matter. */
  readonly weight: number
  /** Hours by which its day is ahead of the network's (its players live elsewhere). */
  readonly dayAheadHours: number
  /** Players that fit into one match. */
  readonly matchSize: number
  readonly publisher: string
  readonly releaseDate: string | null
}

export const TITLE_COUNT = 200

/** The most played titles, in order, by their names in the catalogue. */
const FAVOURITES = [
  'Halo 2',
  'Star Wars: Battlefront II',
  'Project Gotham Racing 2',
  'Counter-Strike',
  'Crimson Skies: High Road to Revenge',
  'MechAssault',
  'Forza Motorsport',
  'Burnout 3: Takedown',
  'Phantasy Star Online Episode I & II',
  'Conker: Live & Reloaded',
  "Tom Clancy's Ghost Recon",
  'Unreal Championship',
  'TimeSplitters: Future Perfect',
  'Worms 4: Mayhem',
  'RalliSport Challenge 2',
  "Tom Clancy's Rainbow Six 3",
  'Guilty Gear X2 #Reload: The Midnight Carnival',
  'Midtown Madness 3',
  'Doom 3',
  'Amped 2'
]

/** Characters of a name that addresses must encode; titles with them are always part of the network. */
const AWKWARD = /[/#&+]/

/** Number of names that several titles share, so that the rule for shared names applies. */
const SHARED_NAMES = 12

/** Sizes of matches, smallest first; the favourites have sizes from 8 on. */
const MATCH_SIZES = [4, 4, 4, 8, 8, 12, 16, 16, 24, 32]
const MATCH_SIZES_OF_FAVOURITES = MATCH_SIZES.slice(3)

/**
 * Returns the titles of the network, most played first: the favourites, those with awkward or shared names, and random
 * others. The weight of rank r is 1/r, as popularity usually falls (Zipf), cut off by e^(-r/25): the first titles hold
 * thousands of players and the second half of the list is empty most of the time.
 */
export function chooseTitles(catalogue: readonly CatalogueTitle[], seed: number): DemoTitle[] {
  const favourites = FAVOURITES.flatMap((name) => catalogue.find((title) => title.name === name) ?? [])
  const shuffled = catalogue
    .map((title) => ({ title, order: chance(seed, stream.titleOrder, Number.parseInt(title.titleId, 16)) }))
    .sort((a, b) => a.order - b.order)
    .map(({ title }) => title)
  const awkward = shuffled.filter((title) => AWKWARD.test(title.name))
  const shared = titlesByName(shuffled).filter((titles) => titles.length > 1)
  const wanted = new Set([...favourites, ...awkward, ...shared.slice(0, SHARED_NAMES).flat(), ...shuffled])
  const chosen = new Set([...wanted].slice(0, TITLE_COUNT))
  const others = shuffled.filter((title) => chosen.has(title) && !favourites.includes(title))
  return [...favourites, ...others].map((title, index) => demoTitle(title, index, seed))
}

/** The product code of a title id: two letters in its first two bytes, a number in the last two. */
export function productCodeOf(titleId: string): string {
  const letters = String.fromCharCode(
    Number.parseInt(titleId.slice(0, 2), 16),
    Number.parseInt(titleId.slice(2, 4), 16)
  )
  return `${letters}-${String(Number.parseInt(titleId.slice(4), 16)).padStart(3, '0')}`
}

function titlesByName(titles: readonly CatalogueTitle[]): CatalogueTitle[][] {
  const byName = new Map<string, CatalogueTitle[]>()
  for (const title of titles) byName.set(title.name, [...(byName.get(title.name) ?? []), title])
  return [...byName.values()]
}

function demoTitle(title: CatalogueTitle, index: number, seed: number): DemoTitle {
  const rank = index + 1
  const sizes = index < FAVOURITES.length ? MATCH_SIZES_OF_FAVOURITES : MATCH_SIZES
  const has = (feature: number, share: number) =>
    index < FAVOURITES.length || chance(seed, stream.titleFeature, index, feature) < share
  return {
    titleId: title.titleId,
    index,
    name: title.name,
    subtitle: title.title === '' ? title.name : title.title,
    productCode: productCodeOf(title.titleId),
    features: [has(0, 0.9), has(1, 0.75), has(2, 0.6), has(3, 0.3)],
    weight: Math.exp(-rank / 25) / rank,
    dayAheadHours: 6 * chance(seed, stream.titlePhase, index) - 3,
    matchSize: sizes[chanceBelow(sizes.length, seed, stream.titleMatchSize, index)] ?? 8,
    publisher: title.publisher,
    releaseDate: title.releaseDate
  }
}
