import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import { Resvg } from '@resvg/resvg-js'

const fonts = join(dirname(createRequire(import.meta.url).resolve('dejavu-fonts-ttf/package.json')), 'ttf')
const font = {
  loadSystemFonts: false,
  fontFiles: ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf'].map((name) => join(fonts, name)),
  defaultFontFamily: 'DejaVu Sans'
}

parentPort?.on('message', ({ id, svg }: { id: number; svg: string }) => {
  try {
    const png = new Resvg(svg, { font }).render().asPng()
    parentPort?.postMessage({ id, png })
  } catch (error) {
    parentPort?.postMessage({ id, error: String(error) })
  }
})
