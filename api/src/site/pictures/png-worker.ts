import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import { openCalls } from '@gamenet/schemas'
import { Resvg } from '@resvg/resvg-js'

const fonts = join(dirname(createRequire(import.meta.url).resolve('dejavu-fonts-ttf/package.json')), 'ttf')
const font = {
  loadSystemFonts: false,
  fontFiles: ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf'].map((name) => join(fonts, name)),
  defaultFontFamily: 'DejaVu Sans'
}

const drawer = { draw: (svg: string): Uint8Array => new Resvg(svg, { font }).render().asPng() }
export type Drawer = typeof drawer

if (parentPort !== null) openCalls(parentPort, drawer)
