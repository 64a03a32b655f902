import { LeaderboardId } from '@gamenet/schemas'
import { quoted } from './page-text.js'
import { childElements, extentOf, hasCommentedOut, type PageElement, shownText } from './page-tree.js'
import { brokenTagIn, type PagePart, type PageSource } from './parsed-page.js'

/** A board as the list of a game page has it. */
export type ListedBoard = { readonly leaderboardId: number; readonly name: string }

const NAME = 'the list of boards (select#leaderboard-select)'
const WHOLE_NUMBER = /^(?:0|[1-9]\d{0,9})$/
const NAME_LENGTH_MAX = 500
const BOARDS_MAX = 20_000
const EMPTY_VALUE = /\svalue\s*=\s*(?:""|'')/i
/** The value of another option, or the rest of its name. */
const OTHER_VALUE = /["']\s*(?:alue|lue|ue|e)\s*=|value.*value/is
const OPTION_TAG = /<\/?option[\s>]/i

/** Reads the list of boards. One unreadable option fails the list, because a missing board would be delisted. */
export function readBoardList(select: PageElement, source: PageSource): PagePart<readonly ListedBoard[]> {
  const options = optionsIn(select, source)
  if (typeof options === 'string') return { ok: false, reason: options }
  const boards = new Map<number, ListedBoard>()
  for (const [index, option] of options.entries()) {
    const { value } = option.attribs
    if (value === '' && isPlaceholder(option, source)) continue
    const leaderboardId = boardIdIn(value)
    const name = shownText(option)
    if (leaderboardId === undefined)
      return refused(index, `expected a whole number as its value, got ${quoted(value ?? '')}`)
    if (name.length > NAME_LENGTH_MAX) return refused(index, `expected a name of at most ${NAME_LENGTH_MAX} characters`)
    if (boards.has(leaderboardId)) return refused(index, `the board ${leaderboardId} occurs in it twice`)
    boards.set(leaderboardId, { leaderboardId, name })
  }
  return { ok: true, value: [...boards.values()] }
}

/**
 * Returns the selected board: the last of several, as in a browser; null for the placeholder, undefined if none is
 * selected.
 */
export function readSelectedBoard(select: PageElement, source: PageSource): PagePart<number | null | undefined> {
  const options = optionsIn(select, source)
  if (typeof options === 'string') return { ok: false, reason: options }
  const selected = options.findLast(({ attribs }) => attribs.selected !== undefined)
  if (selected === undefined) return { ok: true, value: undefined }
  const { value = '' } = selected.attribs
  if (value === '') return { ok: true, value: null }
  const leaderboardId = boardIdIn(value)
  return leaderboardId === undefined
    ? { ok: false, reason: `${NAME} has no whole number selected, but ${quoted(value)}` }
    : { ok: true, value: leaderboardId }
}

/**
 * Returns whether an option has an empty value in quotes and no other. Broken tags can leave two values; the first one
 * counts.
 */
function isPlaceholder(option: PageElement, { html }: PageSource): boolean {
  const start = extentOf(option)?.start
  if (start === undefined) return false
  const tag = html.slice(start, html.indexOf('>', start))
  return EMPTY_VALUE.test(tag) && !OTHER_VALUE.test(tag)
}

function boardIdIn(value: string | undefined): number | undefined {
  if (value === undefined || !WHOLE_NUMBER.test(value)) return undefined
  return LeaderboardId.safeParse(Number(value)).data
}

/** Returns the options, or the fault if the markup lost some: text next to them, or an option without its end tag. */
function optionsIn(select: PageElement, source: PageSource): PageElement[] | string {
  const extent = extentOf(select)
  if (extent?.end === undefined) return `${NAME} is not closed: the page is truncated or broken`
  if (hasCommentedOut(select, OPTION_TAG)) return `${NAME} has an option inside a comment`
  const text = source.html.slice(extent.start, extent.end)
  if (hasOtherTags(text) || brokenTagIn(source, extent.start, extent.end)) return `${NAME} has a broken tag`
  const groups = [select, ...childElements(select, 'optgroup')]
  const options = groups.flatMap((group) => childElements(group, 'option'))
  if (options.length > BOARDS_MAX) return `${NAME} has ${options.length} options, more than ${BOARDS_MAX}`
  for (const group of groups) {
    const stray = group.children.find((node) => node.type === 'text' && 'data' in node && node.data.trim() !== '')
    if (stray !== undefined) return `${NAME} has text outside of its options`
  }
  const closed = options.filter((option) => extentOf(option)?.end !== undefined)
  return closed.length === 0 || closed.length === options.length
    ? options
    : `${NAME} has options with and without an end tag`
}

/**
 * Returns whether a list's text has tags that lists do not have, or parts of tags: browsers drop these with their
 * content.
 */
function hasOtherTags(text: string): boolean {
  return /[<>]/.test(text.replace(/<!--[^<>]*-->|<\/?(?:select|optgroup|option|hr)(?:[\s/][^<>]*)?>/gi, ''))
}

function refused(index: number, reason: string): { ok: false; reason: string } {
  return { ok: false, reason: `option ${index + 1} of ${NAME}: ${reason}` }
}
