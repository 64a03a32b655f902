import type { ComponentChildren, JSX } from 'preact'
import type { Query } from '../values/page.js'
import { withQuery } from './text.js'

type FormProps = {
  action: string
  submit: string
  /** What else stays chosen. */
  hidden?: Query
  children: ComponentChildren
}

/** A form whose fields become the query of an address. */
export function Form({ action, submit, hidden = {}, children }: FormProps) {
  return (
    <form action={action} class="row">
      {Object.entries(hidden).map(([name, value]) =>
        value === undefined ? null : <input key={name} type="hidden" name={name} value={value} />
      )}
      {children}
      <button type="submit">{submit}</button>
    </form>
  )
}

type FieldProps = { name: string; label: string; value?: string | undefined; required?: boolean }

/** A field of a form, whose label stands in it. */
export function Field({ label, ...input }: FieldProps) {
  return <input {...input} placeholder={label} aria-label={label} maxlength={500} />
}

/** A field of a form behind its label. */
export function Labelled({ label, ...field }: JSX.IntrinsicElements['input'] & { label: string }) {
  return (
    <label>
      {label} <input {...field} />
    </label>
  )
}

/** The search for names and times, at the words that were searched for. */
export function SearchForm({ words }: { words?: string | undefined }) {
  return (
    <Form action="/search" submit="Search">
      <Field name="q" value={words} label="Search games, boards, players and times" />
    </Form>
  )
}

/** Compares a player with one who is named here. */
export function CompareWith({ player }: { player: string }) {
  return (
    <Form action="/compare/players" submit="Compare" hidden={{ names: player }}>
      <Field name="with" label="Compare with a player" />
    </Form>
  )
}

type ChoiceProps = {
  label: string
  path: string
  query: Query
  name: string
  /** The first is the usual one, which no address contains. */
  values: readonly string[]
  current: string | undefined
  texts?: Readonly<Record<string, string>>
}

/** A choice among addresses of one page, such as the ranges of a chart. */
export function Choice({ label, path, query, name, values, current, texts = {} }: ChoiceProps) {
  return (
    <nav class="choice" aria-label={label}>
      {values.map((value, index) => (
        <a
          key={value}
          href={withQuery(path, { ...query, [name]: index === 0 ? undefined : value })}
          rel="nofollow"
          aria-current={value === current ? 'true' : undefined}
        >
          {texts[value] ?? value}
        </a>
      ))}
    </nav>
  )
}

type ToggleProps = { path: string; query: Query; name: string; value: string; children: ComponentChildren }

/** A link that chooses one value of a query, or takes it back. */
export function Toggle({ path, query, name, value, children }: ToggleProps) {
  const isOn = query[name] === value
  return (
    <a
      href={withQuery(path, { ...query, [name]: isOn ? undefined : value })}
      rel="nofollow"
      aria-current={isOn ? 'true' : undefined}
    >
      {children}
    </a>
  )
}
