// This file finds the common beginning and end of two versions of a very long text by bisection. It compares whole slices and not single
// characters, because the engine compares slices at the speed of the memory.

/** Returns how many characters are equal at the beginning of two texts. */
export function commonStart(a: string, b: string): number {
  let [low, high] = [0, Math.min(a.length, b.length)]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (a.slice(low, middle) === b.slice(low, middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** Returns how many characters are equal at the end of two texts, without the first `start` characters. */
export function commonEnd(a: string, b: string, start: number): number {
  let [low, high] = [0, Math.min(a.length, b.length) - start]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    const partA = a.slice(a.length - middle, a.length - low)
    if (partA === b.slice(b.length - middle, b.length - low)) low = middle
    else high = middle - 1
  }
  return low
}

/** Returns the number of line ends in the text. */
export function linesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
