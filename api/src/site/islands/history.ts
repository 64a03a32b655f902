import { showLocal } from './local.js'
import { buttonOf, readPage } from './service.js'

const STEP_MS = 1000

/** A slider over the days on which the board changed, and a button that plays them one after the other. */
const days = [...document.querySelectorAll<HTMLAnchorElement>('#days a[data-day]')].reverse()
const place = document.querySelector('.as-of')
if (place !== null && days.length > 1) place.append(playerOf(days))

function playerOf(links: readonly HTMLAnchorElement[]): HTMLElement {
  const row = document.createElement('div')
  row.className = 'row player'
  const slider = document.createElement('input')
  slider.type = 'range'
  slider.max = String(links.length)
  slider.setAttribute('aria-label', 'Day on which the board changed')
  const play = buttonOf('▶ Play history', () => {
    if (timer !== undefined) return stop()
    const next = Number(slider.value) === links.length ? 0 : Number(slider.value) + 1
    // Readers who want no motion step by hand.
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return void show(next)
    play.textContent = '■ Stop'
    timer = setTimeout(() => void step(next), 0)
  })
  const faster = buttonOf('Faster', () => {
    speed = speed === 4 ? 1 : speed * 2
    faster.textContent = speed === 1 ? 'Faster' : `${speed} ×`
  })
  const label = document.createElement('output')
  const now = new URL(location.href)
  now.searchParams.delete('asOf')
  const textOf = (index: number): string => links[index]?.textContent ?? 'Now'
  const asOf = new URL(location.href).searchParams.get('asOf')?.slice(0, 10)
  const start = links.findIndex(({ dataset }) => dataset.day === asOf)
  slider.value = String(start === -1 ? links.length : start)
  label.textContent = textOf(Number(slider.value))
  let timer: ReturnType<typeof setTimeout> | undefined
  let speed = 1
  let asked = 0

  const show = async (index: number): Promise<void> => {
    slider.value = String(index)
    label.textContent = textOf(index)
    asked += 1
    const mine = asked
    const href = links[index]?.href ?? now.href
    const page = await readPage(href)
    const [old, fresh] = [document.getElementById('entries'), page?.getElementById('entries')]
    if (page === undefined || old === null || fresh == null || mine !== asked) return
    old.replaceWith(fresh)
    // The address says what is shown, so that it can be shared.
    history.replaceState(null, '', href)
    document.title = page.title
    showLocal()
  }
  const stop = (): void => {
    clearTimeout(timer)
    timer = undefined
    play.textContent = '▶ Play history'
  }
  const step = async (index: number): Promise<void> => {
    if (index > links.length) return stop()
    await show(index)
    if (timer !== undefined) timer = setTimeout(() => void step(index + 1), STEP_MS / speed)
  }
  slider.addEventListener('input', () => (label.textContent = textOf(Number(slider.value))))
  slider.addEventListener('change', () => {
    stop()
    void show(Number(slider.value))
  })
  row.append(play, faster, slider, label)
  return row
}
