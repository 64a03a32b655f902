import type { ComponentChildren } from 'preact'
import { imagePath } from './image-path.js'
import { count, dayText, gamePath, instantText, letterOf, msOf, percent, playerPath, userPath } from './text.js'

/** An integer. The script writes it as the reader's language does; `live` names what the stream keeps current. */
export function N({ of, live }: { of: number; live?: string }) {
  return (
    <data value={of} {...(live === undefined ? {} : { 'data-live': live })}>
      {count(of)}
    </data>
  )
}

/** An instant: in UTC, by script in the reader's zone; with `ago` as an age. */
export function Time({ at, ago = false, day = false }: { at: string | number; ago?: boolean; day?: boolean }) {
  const ms = typeof at === 'number' ? at : msOf(at)
  const form = ago ? 'ago' : day ? 'day' : 'instant'
  return (
    <time datetime={new Date(ms).toISOString()} data-form={form}>
      {day ? dayText(ms) : `${instantText(ms)} UTC`}
    </time>
  )
}

/** How much a value rose or fell: direction, share, and against what. */
export function Change({ now, before, than }: { now: number; before: number | null; than: string }) {
  if (before === null || before <= 0) return null
  const share = (now - before) / before
  const mark = share > 0.0005 ? '▲' : share < -0.0005 ? '▼' : '='
  return (
    <span class={`change ${mark === '▲' ? 'up' : mark === '▼' ? 'down' : ''}`}>
      <span aria-hidden="true">{mark} </span>
      <span class="unseen">{share < 0 ? 'down ' : share > 0 ? 'up ' : 'unchanged '}</span>
      {percent(Math.abs(share))} {than}
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

/** A game by name, with its icon when `image` is given. */
export function GameLink(props: { titleId: string; name: string; image?: string }) {
  const { titleId, name, image } = props
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

/** A star that adds the thing to the watch list. Shown by script, which keeps the list. */
export function Watch({ href, name }: { href: string; name: string }) {
  return (
    <button type="button" class="watch" data-watch={href} data-name={name} hidden>
      ☆ Watch
    </button>
  )
}

/** A button that adds to the tray of comparisons. Shown by script. */
export function AddToCompare({ kind, id, name }: { kind: 'games' | 'players'; id: string; name: string }) {
  return (
    <button type="button" class="tray" data-tray={kind} data-id={id} data-name={name} hidden>
      + Compare
    </button>
  )
}

/** A section with a heading. */
export function Card(props: {
  title: string
  id?: string
  more?: ComponentChildren
  children: ComponentChildren
  wide?: boolean
}) {
  const { title, id, more, children, wide = false } = props
  return (
    <section class={wide ? 'card wide' : 'card'} {...(id === undefined ? {} : { id })}>
      <div class="card-head">
        <h2>{title}</h2>
        {more === undefined ? null : <div class="more">{more}</div>}
      </div>
      {children}
    </section>
  )
}

/** What scrolls sideways on small screens; it can be reached by keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="scroll" tabindex={0} aria-label={label}>
      {children}
    </section>
  )
}

/** A table that scrolls sideways on small screens. */
export function Table({
  label,
  head,
  children
}: {
  label: string
  head: readonly string[]
  children: ComponentChildren
}) {
  return (
    <Scroll label={label}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col" class={name.startsWith('#') ? 'number' : undefined}>
                {name.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  )
}

/** Links to the pages before and after; `hrefOf` gives the address of a page. */
export function Pager(props: { page: number; pages: number; hrefOf: (page: number) => string; label?: string }) {
  const { page, pages, hrefOf, label = 'Pages' } = props
  if (pages <= 1) return null
  return (
    <nav class="pager" aria-label={label}>
      {page > 1 ? (
        <a href={hrefOf(page - 1)} rel="prev nofollow">
          ‹ Previous
        </a>
      ) : null}
      <span>
        Page {count(page)} of {count(pages)}
      </span>
      {page < pages ? (
        <a href={hrefOf(page + 1)} rel="next nofollow">
          Next ›
        </a>
      ) : null}
    </nav>
  )
}

/** A choice among addresses of one page, such as the ranges of a chart. */
export function Choice(props: {
  label: string
  options: readonly { readonly text: string; readonly href: string; readonly isCurrent: boolean }[]
}) {
  return (
    <nav class="choice" aria-label={props.label}>
      {props.options.map(({ text, href, isCurrent }) => (
        <a key={text} href={href} rel="nofollow" {...(isCurrent ? { 'aria-current': 'true' as const } : {})}>
          {text}
        </a>
      ))}
    </nav>
  )
}
