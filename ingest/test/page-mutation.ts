import fc from 'fast-check'
import type { RenderedPage } from './page-model.js'

const RUN_LENGTH_MAX = 40

/** A change of a page's markup that does not touch its facts. */
export type Mutation = (page: RenderedPage) => RenderedPage

const place = fc.nat()
const runLength = fc.integer({ min: 1, max: RUN_LENGTH_MAX })
/** Bytes deleted, doubled, swapped or inserted, tags dropped. */
export const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(place, runLength).map(([at, length]) => deletion(at, length)),
  fc.tuple(place, runLength).map(([at, length]) => doubling(at, length)),
  place.map((at) => swap(at)),
  fc.tuple(place, fc.constantFrom('<', '>', '"', "'", '/', '&', ' ', '=', '!', '-->', '<!--')).map(insertion),
  place.map(tagDrop)
)

/** Replaces a run of text, unless it overlaps a fact: a page with an edited digit has other facts. */
function edit(page: RenderedPage, first: number, next: number, text: string): RenderedPage {
  const touched = page.facts.some((fact) => fact.first < next && first < fact.next)
  const inside = page.facts.some((fact) => fact.first <= first && next <= fact.next && first !== next)
  const splits = first === next && page.facts.some((fact) => fact.first < first && first < fact.next)
  if (touched || inside || splits) return page
  const shift = text.length - (next - first)
  return {
    html: page.html.slice(0, first) + text + page.html.slice(next),
    facts: page.facts.map((fact) => (fact.first >= next ? shifted(fact, shift) : fact))
  }
}

function shifted(fact: { first: number; next: number }, by: number) {
  return { first: fact.first + by, next: fact.next + by }
}

function deletion(at: number, length: number): Mutation {
  return (page) => {
    const first = at % page.html.length
    return edit(page, first, Math.min(first + length, page.html.length), '')
  }
}

/** Doubles a run without facts, because a doubled fact would be a second row. */
function doubling(at: number, length: number): Mutation {
  return (page) => {
    const first = at % page.html.length
    const run = page.html.slice(first, first + length)
    return edit(page, first, first + run.length, run + run)
  }
}

function swap(at: number): Mutation {
  return (page) => {
    const first = at % Math.max(1, page.html.length - 1)
    const [before = '', after = ''] = [page.html[first], page.html[first + 1]]
    return edit(page, first, first + 2, after + before)
  }
}

function insertion([at, text]: [number, string]): Mutation {
  return (page) => {
    const first = at % page.html.length
    return edit(page, first, first, text)
  }
}

function tagDrop(at: number): Mutation {
  return (page) => {
    const tags = [...page.html.matchAll(/<[^>]*>/g)]
    const tag = tags[at % tags.length]
    return tag === undefined ? page : edit(page, tag.index, tag.index + tag[0].length, '')
  }
}
