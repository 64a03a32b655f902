import type { ComponentChildren } from 'preact'
import { z } from 'zod'
import { type Endpoint, pathParameters, type ResolveContext } from '../../answers/endpoint.js'
import { iso } from './iso.js'

/*
 * page     an address with its content, as a value: its input, the answers that it is made of, how they become HTML
 * part     an answer of an endpoint that a page is made of
 * view     what a page says: title, description, canonical address, content
 * island   a module of the browser that improves HTML which is complete without it
 */

export const SITE_NAME = 'Gamenet Stats'

/** The question of a part: an endpoint, and its parameters as in a URL. `Body` is what the answer parses to. */
export type Part<Body> = {
  readonly endpoint: Endpoint
  readonly given: Readonly<Record<string, unknown>>
  /** The page stands without it: a refusal or a failure leaves the part away. */
  readonly isOptional: boolean
  readonly body?: Body
}

type Given = Readonly<Record<string, string | number | undefined>>

/** A part without which the page is refused. */
export function ask<Body>(endpoint: Endpoint, given: Given = {}): Part<Body> {
  return { endpoint, given: texts(given), isOptional: false }
}

/** A part that the page can do without. */
export function tryAsk<Body>(endpoint: Endpoint, given: Given = {}): Part<Body | undefined> {
  return { endpoint, given: texts(given), isOptional: true }
}

function texts(given: Given): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  )
}

export type Parts = Readonly<Record<string, Part<unknown> | undefined>>

/** What is chosen by the query of an address, as text, without usual values. */
export type Query = Readonly<Record<string, string | undefined>>

/** Parameters that are instants: numbers once they are parsed. */
const INSTANTS: ReadonlySet<string> = new Set(['asOf', 'knownAt', 'from', 'to'])

/** Returns the query of an input: not what the path says, nor what holds without it. */
export function queryOf({ path, input: { shape } }: Pick<Page, 'path' | 'input'>, input: unknown): Query {
  const inPath = pathParameters(path)
  const chosen = Object.entries(input as object).flatMap(([name, value]) => {
    if (inPath.has(name) || value === undefined || value === usualOf(shape[name])) return []
    return [[name, INSTANTS.has(name) ? iso(value) : String(value)]]
  })
  return Object.fromEntries(chosen)
}

function usualOf(parameter: z.core.$ZodType | undefined): unknown {
  return parameter === undefined ? undefined : z.safeParse(parameter, undefined).data
}

/** The answers of parts by name. */
export type Answers<Of extends Parts> = {
  readonly [Name in keyof Of]: Of[Name] extends Part<infer Body> | undefined ? Body : never
}

/** What determined an answer, as far as charts need it. */
export type Resolved = {
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly resolutionSeconds: number
}

/** What the view of a page may read besides its answers: the same for all readers. */
export type SiteFacts = {
  /** Without a trailing slash; `""` while PUBLIC_URL is not set: addresses are then relative. */
  readonly publicUrl: string
  readonly version: string
  /** The first segment of the addresses of styles and islands: changes with their content. */
  readonly build: string
  /** The auth service; without it nobody can sign in. */
  readonly authUrl: string | undefined
}

export type ViewContext<Of extends Parts> = {
  readonly site: SiteFacts
  readonly query: Query
  readonly resolved: { readonly [Name in keyof Of]: Resolved }
}

/** What a page says. */
export type View = {
  /** One headline, without the name of the site. */
  readonly title: string
  readonly description?: string
  /** The path that names this content; other spellings and arrangements of it point here. */
  readonly canonical: string
  /** Not for search engines, such as a person. Default: whether a query arranges the page. */
  readonly isUnlisted?: boolean
  /** The path of a picture of 1200 × 630. */
  readonly picture?: string
  readonly feeds?: readonly { readonly title: string; readonly href: string }[]
  /** The path whose navigation entry is current. */
  readonly section?: string
  readonly hasChart?: boolean
  /** Further islands, by the names of their modules. */
  readonly islands?: readonly string[]
  /** Framed by other pages: without header and footer. */
  readonly isEmbed?: boolean
  readonly theme?: 'light' | 'dark' | undefined
  readonly content: ComponentChildren
}

/** A drawing in place of a page, sent as SVG, or as PNG where the path ends so. */
export type Picture = { readonly svg: string }

/** A page, written as `page({ … })`. */
export type Page<Input = unknown, Of extends Parts = Parts> = {
  /** Unique; for metrics. */
  readonly name: string
  readonly path: string
  readonly input: z.ZodType<Input> & Pick<z.ZodObject, 'shape'>
  /** Input → questions. Throws a `Refusal` or a `Redirect`. */
  parts(input: Input, context: ResolveContext & { readonly query: Query }): Of | Promise<Of>
  view(answers: Answers<Of>, input: Input, context: ViewContext<Of>): View | Picture
}

/** Returns the page without the types of its parts. */
export const page = <Input, Of extends Parts>(value: Page<Input, Of>): Page => value as unknown as Page

/** Thrown where a page has another address. */
export class Redirect extends Error {
  readonly location: string
  readonly status: 302 | 308

  constructor(location: string, status: 302 | 308 = 308) {
    super(location)
    this.location = location
    this.status = status
  }
}
