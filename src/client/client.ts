// A Client sends requests to one daemon, and returns the answers with the types of the OpenAPI document (api-types.ts). The command line uses
// it too. Every request has a connection of its own, so a Client needs no end.

import type { Operations } from './api-types.ts'
import { decode, decodeRows, gather } from './decode.ts'
import { problemIn, type ProblemError } from './problem-error.ts'
import { send, type Response, type Signal, type SocketPlace } from './transport.ts'

/** The name of a request: `GET /v1/status`. */
export type OperationName = keyof Operations
/** Requests whose answer is a list or JSON lines. */
export type RowsName = {
  [Name in OperationName]: Operations[Name] extends { readonly row: unknown } ? Name : never
}[OperationName]
/** Requests whose answer is one JSON value. */
export type ValueName = {
  [Name in OperationName]: Operations[Name] extends { readonly answer: unknown } ? Name : never
}[OperationName]

/** Parameters, headers and body of a request. */
export type RequestOptions<Name extends OperationName> = Omit<
  Operations[Name],
  'answer' | 'row'
> & {
  /** The longest time until the first octet of the answer, in milliseconds. Without it, there is no limit while the daemon works. */
  readonly timeoutMs?: number
  readonly signal?: Signal
}

/** The options can be left out if none is needed. */
type OptionsOf<Name extends OperationName> =
  object extends RequestOptions<Name>
    ? readonly [options?: RequestOptions<Name>]
    : readonly [options: RequestOptions<Name>]

export interface Reply<Shape> {
  readonly value: Shape
  /** The version of the object, for `If-Match`. Undefined where the API has no versions. */
  readonly etag: string | undefined
}

export class Client {
  readonly socket: string
  readonly #place: SocketPlace
  readonly #errorOf: (problem: ProblemError) => Error

  /** `errorOf` returns the error that is thrown for a refusal, which is the ProblemError itself by default. */
  constructor(place: SocketPlace, errorOf: (problem: ProblemError) => Error = (same) => same) {
    this.socket = place.path
    this.#place = place
    this.#errorOf = errorOf
  }

  /**
   * Sends a request and returns its answer. Throws ProblemError if the daemon refuses, and ConnectionError if no daemon answers.
   */
  async request<Name extends ValueName>(
    name: Name,
    ...[options]: OptionsOf<Name>
  ): Promise<Reply<Operations[Name]['answer']>> {
    const { body, etag } = await this.#open(name, options)
    return { value: await decode<Operations[Name]['answer']>(body), etag }
  }

  /**
   * Sends a request and yields the objects of its answer while they arrive. Leaving the loop ends the request. Throws the same errors as
   * `request`.
   */
  async *rows<Name extends RowsName>(
    name: Name,
    ...[options]: OptionsOf<Name>
  ): AsyncGenerator<Operations[Name]['row'], undefined> {
    const { body } = await this.#open(name, options)
    yield* decodeRows<Operations[Name]['row']>(body)
  }

  /** Sends a request and yields the text of its answer in pieces. Throws the same errors as `request`. */
  async *text<Name extends OperationName>(
    name: Name,
    ...[options]: OptionsOf<Name>
  ): AsyncGenerator<string, undefined> {
    yield* (await this.#open(name, options)).body
  }

  async #open(name: OperationName, options: AnyOptions = {}): Promise<Response> {
    const [method = '', template = ''] = name.split(' ')
    const { headers = {}, body, timeoutMs, signal } = options
    const path = pathOf(template, options)
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await send(this.#place, {
      ...{ method, path, timeoutMs, signal },
      headers: { ...headers, ...type },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    if (response.status === 200) return response
    throw this.#errorOf(problemIn(response.status, path, await gather(response.body)))
  }
}

/** A list repeats the parameter. */
type QueryValue = string | number | readonly string[]

interface AnyOptions {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, QueryValue | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly timeoutMs?: number
  readonly signal?: Signal
}

/** Puts parameters into a path such as `/v1/resources/{name}`. */
function pathOf(template: string, { path = {}, query = {} }: AnyOptions): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(path[key] ?? ''),
  )
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    const values = value === undefined ? [] : [value].flat()
    for (const each of values) parameters.append(key, String(each))
  }
  return parameters.size === 0 ? filled : `${filled}?${parameters.toString()}`
}
