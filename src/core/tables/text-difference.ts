// The common parts of two versions of a very long text. Halves are compared, not characters: the engine compares as fast as the memory is.

/** How many characters two texts have in common at their beginning. */
export function commonStart(a: string, b: string): number {
  let [low, high] = [0, Math.min(a.length, b.length)]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (a.slice(low, middle) === b.slice(low, middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** The same at their end, outside of a beginning of that length. */
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

/** How many lines end in the text. */
export function linesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
