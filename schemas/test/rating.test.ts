import { test } from 'tap'
import { averageOf } from '../src/nouns/rating.js'

test('an average has two decimals, halves rounded up, in spite of binary fractions', async (t) => {
  t.equal(averageOf(0, 0), 5)
  t.equal(averageOf(4, 1), 4.91)
  t.equal(averageOf(119, 30), 4.23, '169 / 40 is 4.225')
  for (let count = 0; count <= 150; count += 1) {
    for (let sum = count; sum <= 5 * count; sum += 1) {
      // Whole hundredths, and 1 more if the remainder is at least a half.
      const hundredths = 100 * (50 + sum)
      const votes = count + 10
      const rest = hundredths % votes
      const wanted = (hundredths - rest) / votes + (2 * rest >= votes ? 1 : 0)
      const average = averageOf(sum, count)
      if (average !== wanted / 100) t.fail(`${sum} stars in ${count} ratings: ${average}, wanted ${wanted / 100}`)
    }
  }
})
