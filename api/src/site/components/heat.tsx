import type { ComponentChildren } from 'preact'

export type Cell = { readonly x: number; readonly y: number; readonly shade: number; readonly title: string }

type HeatProps = {
  label: string
  width: number
  height: number
  /** Width and height of a cell with the space behind it. */
  size: readonly [width: number, height: number]
  cells: readonly Cell[]
  class?: string
  children?: ComponentChildren
}

/** How strong a shade is, from 0 to 5. */
export const SHADES = [0.08, 0.15, 0.33, 0.55, 0.78, 1] as const

/** Squares whose shade, 0 to 5, is a value. */
export function Heat({ label, width, height, size: [across, down], cells, class: name, children }: HeatProps) {
  return (
    <svg class={name ?? 'heat'} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {children}
      {cells.map(({ x, y, shade, title }) => (
        <rect key={`${x} ${y}`} opacity={SHADES[shade]} x={x} y={y} width={across - 1} height={down - 1}>
          <title>{title}</title>
        </rect>
      ))}
    </svg>
  )
}
