// Decodes what a daemon answers. This is the only place where its JSON gets the types of the OpenAPI document. The types are not checked,
// because a daemon of another version can leave fields out, and a client should work with the others.

/** Reads a whole body as JSON. Throws SyntaxError for a body that is none. */
export async function decode<Shape>(parts: AsyncIterable<string>): Promise<Shape> {
  return JSON.parse(await gather(parts)) as Shape
}

/** Yields the objects of a body with one object in each line: a list, or JSON lines. Throws SyntaxError for other lines. */
export async function* decodeRows<Shape>(parts: AsyncIterable<string>): AsyncGenerator<Shape> {
  for await (const line of linesIn(parts)) {
    if (!line.startsWith('{')) continue
    yield JSON.parse(line.endsWith(',') ? line.slice(0, -1) : line) as Shape
  }
}

export async function gather(parts: AsyncIterable<string>): Promise<string> {
  let all = ''
  for await (const part of parts) all += part
  return all
}

async function* linesIn(parts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const part of parts) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
