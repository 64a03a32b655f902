import { type ComponentChildren, Fragment } from 'preact'
import { imagePath } from './image-path.js'
import {
  count,
  dayText,
  gamePath,
  instantText,
  letterOf,
  msOf,
  percent,
  playerPath,
  userPath,
  withQuery
} from './text.js'

/** An integer. The script writes it as the reader's language does; `live` names what the stream keeps current. */
export function N({ of, live }: { of: number; live?: string }) {
  return (
    <data value={of} data-live={live}>
      {count(of)}
    </data>
  )
}

/** An instant: in UTC, by script in the reader's zone; with `ago` as an age. */
export function Time({ at, ago = false, day = false }: { at: string | number; ago?: boolean; day?: boolean }) {
  const ms = typeof at === 'number' ? at : msOf(at)
  const form = ago ? 'ago' : day ? 'day' : 'instant'
  return (
    <time datetime={new Date(ms).toISOString()} data-form={form} title={`${instantText(ms)} UTC`}>
      {day || ago ? dayText(ms) : `${instantText(ms)} UTC`}
    </time>
  )
}

/** An age, behind what happened. */
export function Ago({ at }: { at: string }) {
  return (
    <span class="quiet">
      <Time at={at} ago />
    </span>
  )
}

/** How much a value rose or fell: direction, share, and against what. */
export function Change({ now, before, than }: { now: number; before: number | null; than: ComponentChildren }) {
  if (before === null || before <= 0) return null
  const share = (now - before) / before
  const mark = share > 0.0005 ? '▲' : share < -0.0005 ? '▼' : '='
  return (
    <span class={`change ${mark === '▲' ? 'up' : mark === '▼' ? 'down' : ''}`}>
      <span aria-hidden="true">{mark} </span>
      <span class="unseen">{mark === '▲' ? 'up ' : mark === '▼' ? 'down ' : 'unchanged '}</span>
      {percent(Math.abs(share))} {than}
    </span>
  )
}

/** A change as a signed share. */
export function Share({ of }: { of: number | null }) {
  if (of === null) return null
  return (
    <span class={of > 0.0005 ? 'up' : of < -0.0005 ? 'down' : ''}>
      {of > 0 ? '+' : of < 0 ? '−' : ''}
      {percent(Math.abs(of))}
    </span>
  )
}

/** The icon of a game or achievement through this service; a drawn letter where there is none. */
export function Icon({ image, name, size = 32 }: { image: string | null | undefined; name: string; size?: number }) {
  const path = imagePath(image)
  if (path === undefined) {
    return (
      <span class={`icon letter${size > 40 ? ' large' : ''}`} aria-hidden="true">
        {letterOf(name)}
      </span>
    )
  }
  return <img class="icon" src={path} alt="" width={size} height={size} loading="lazy" decoding="async" />
}

/** A name of strangers, in its own direction. */
export function Name({ children }: { children: ComponentChildren }) {
  return <bdi>{children}</bdi>
}

/** A game by name, with its icon when `image` is given; the bare name of a game without an id. */
export function GameLink({ titleId, name, image }: { titleId: string | null; name: string; image?: string }) {
  if (titleId === null) return <Name>{name}</Name>
  return (
    <a class="named" href={gamePath({ titleId, name })}>
      {image === undefined ? null : <Icon image={image} name={name} />}
      <Name>{name}</Name>
    </a>
  )
}

export function PlayerLink({ name }: { name: string }) {
  // A path of dots alone would be resolved away.
  if (/^\.{1,2}$/.test(name)) return <Name>{name}</Name>
  return (
    <a href={playerPath(name)}>
      <Name>{name}</Name>
    </a>
  )
}

export function UserLink({ name }: { name: string }) {
  return (
    <a href={userPath(name)} rel="nofollow">
      <Name>{name}</Name>
    </a>
  )
}

/** A highest count with its name, and the day on which it was. */
export function Peak({ name, of, at }: { name: string; of: number; at?: string | null }) {
  return (
    <>
      {name} <N of={of} />
      {at == null ? null : (
        <>
          {' '}
          (<Time at={at} day />)
        </>
      )}
    </>
  )
}

/** Parts of a sentence with a point between them; those that are absent are left out. */
export function Facts({ of }: { of: readonly ComponentChildren[] }) {
  const known = of.filter((part) => part !== null && part !== undefined && part !== false && part !== '')
  return (
    <>
      {known.map((part, index) => (
        <Fragment key={index}>
          {index === 0 ? '' : ' · '}
          {part}
        </Fragment>
      ))}
    </>
  )
}

type ToolsProps = {
  /** The address and name under which the page is watched. */
  path: string
  name: string
  /** The path of the embed. */
  embed: string
  csv?: string
  atom?: string
  /** Adds to the tray of comparisons. */
  compare?: { readonly kind: 'games' | 'players'; readonly id: string }
}

/** What a reader can do with a page. The buttons are shown by script, which does what they say. */
export function Tools({ path, name, embed, csv, atom, compare }: ToolsProps) {
  return (
    <div class="tools">
      <button type="button" class="scripted" data-watch={path} data-name={name}>
        ☆ Watch
      </button>
      {compare === undefined ? null : <AddToCompare {...compare} name={name} />}
      <button type="button" class="scripted share">
        Share
      </button>
      <a href={withQuery('/docs/guide/embed', { path: embed })}>Embed</a>
      {csv === undefined ? null : <Csv href={csv} />}
      {atom === undefined ? null : <a href={atom}>Atom</a>}
    </div>
  )
}

/** The same page by the days and hours of the reader's zone, which only the browser knows. */
export function InZone({ path }: { path: string }) {
  return (
    <a class="in-zone" href={path} rel="nofollow" hidden>
      In my zone
    </a>
  )
}

export function Csv({ href }: { href: string }) {
  return (
    <a href={href} rel="nofollow">
      CSV
    </a>
  )
}

/** A button that adds to the tray of comparisons. Shown by script. */
export function AddToCompare({ kind, id, name }: { kind: 'games' | 'players'; id: string; name: string }) {
  return (
    <button type="button" class="scripted" data-tray={kind} data-id={id} data-name={name}>
      + Compare
    </button>
  )
}

type CardProps = { title: string; id?: string | undefined; more?: ComponentChildren; children: ComponentChildren }

/** A section with a heading. */
export function Card({ title, id, more, children }: CardProps) {
  return (
    <section class="card" id={id}>
      <div class="card-head">
        <h2>{title}</h2>
        {more === undefined ? null : <div class="more">{more}</div>}
      </div>
      {children}
    </section>
  )
}
