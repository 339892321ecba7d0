// Answers GET requests from an ApiModel: objects, lists, watches and discovery, with their parameters.

import { groupOf, groupPath } from '../../../src/kubernetes/reflector/collections.ts'
import {
  RESOURCES,
  type ApiModel,
  type ModelEvent,
  type Stored,
  type Watcher,
} from './api-model.ts'
import { status, type Status } from './api-statuses.ts'

export type Reply =
  | { readonly kind: 'body'; readonly code: number; readonly body: unknown }
  /** `begin` sends what is there, and then changes. It returns a function that ends the watch. */
  | {
      readonly kind: 'stream'
      readonly seconds: number
      begin(send: (event: ModelEvent) => void, end: () => void): () => void
      /** Undefined if the watch does not want bookmarks. */
      bookmark(): ModelEvent | undefined
    }

interface Token {
  readonly revision: number
  readonly items: readonly Stored[]
}

export class ApiRequests {
  readonly #model: ApiModel
  readonly #tokens = new Map<string, Token>()

  constructor(model: ApiModel) {
    this.#model = model
  }

  /** `path` has the query. An administrator has all rights. */
  answer(path: string, isAdministrator = false): Reply {
    const url = new URL(path, 'https://api.test')
    if (url.pathname === '/readyz') return this.#ready(isAdministrator)
    const place = placeOf(url.pathname)
    if (place === undefined) {
      const found = this.#model.discover(url.pathname)
      return 'code' in found ? refuse(found) : { kind: 'body', code: 200, body: found }
    }
    const isWatch = url.searchParams.get('watch') === 'true'
    const verb = place.name !== undefined ? 'get' : isWatch ? 'watch' : 'list'
    const { resource, apiVersion } = place
    if (!isAdministrator && this.#model.denied.has(`${verb} ${resource}`)) {
      return refuse(status.forbidden(verb, resource, groupOf({ apiVersion, kind: '' })))
    }
    if (!this.#model.defined.has(resource)) return refuse(status.noPath())
    if (place.name !== undefined) return this.#object(place, place.name)
    const matches = matcherOf(place.namespace, url.searchParams.get('fieldSelector'))
    const request = { resource, matches, parameters: url.searchParams }
    return isWatch ? this.#watch(request) : this.#list(request)
  }

  #ready(isAdministrator: boolean): Reply {
    if (!isAdministrator && this.#model.denied.has('get /readyz')) {
      return refuse(status.forbidden('get', '/readyz', ''))
    }
    return { kind: 'body', code: this.#model.isStarting ? 500 : 200, body: 'readyz' }
  }

  #object({ resource, namespace }: Place, name: string): Reply {
    const found = this.#model.find(resource, name, namespace)
    if (found === undefined) return refuse(status.notFound(resource, name))
    return { kind: 'body', code: 200, body: { ...this.#model.kindOf(resource), ...found } }
  }

  #list({ resource, matches, parameters }: Request): Reply {
    const model = this.#model
    const version = parameters.get('resourceVersion') ?? ''
    const next = parameters.get('continue')
    if (version !== '' && !/^\d+$/.test(version)) {
      return refuse(status.badRequest(`Invalid value: "${version}": invalid resource version`))
    }
    if (Number(version) > model.revision)
      return refuse(status.tooLarge(Number(version), model.revision))
    if (next !== null) return this.#page(resource, next, Number(parameters.get('limit') ?? 0))
    const revision = version === '0' ? model.revision - model.lag : model.revision
    const items = model.at(resource, revision).filter(matches)
    const limit = version === '0' ? 0 : Number(parameters.get('limit') ?? 0)
    return this.#pageOf(resource, { revision, items }, limit)
  }

  #page(resource: string, next: string, limit: number): Reply {
    const token = this.#tokens.get(next)
    if (token === undefined) return refuse(status.badRequest('continue key is not valid'))
    if (token.revision >= this.#model.compacted) return this.#pageOf(resource, token, limit)
    const rest = new Set(token.items.map(({ metadata }) => metadata.uid))
    const items = this.#model.all(resource).filter(({ metadata }) => rest.has(metadata.uid))
    return refuse(status.continueExpired(this.#keep({ revision: this.#model.revision, items })))
  }

  #pageOf(resource: string, { revision, items }: Token, limit: number): Reply {
    const { apiVersion, kind } = this.#model.kindOf(resource)
    const isWhole = limit <= 0 || items.length <= limit
    const more = isWhole
      ? {}
      : {
          continue: this.#keep({ revision, items: items.slice(limit) }),
          remainingItemCount: items.length - limit,
        }
    const body = {
      kind: `${kind}List`,
      apiVersion,
      metadata: { resourceVersion: String(revision), ...more },
      items: (isWhole ? items : items.slice(0, limit)).map(withoutKind),
    }
    return { kind: 'body', code: 200, body }
  }

  #keep(token: Token): string {
    const text = `token-${this.#tokens.size + 1}`
    this.#tokens.set(text, token)
    return text
  }

  #watch({ resource, matches, parameters }: Request): Reply {
    const model = this.#model
    const version = parameters.get('resourceVersion') ?? ''
    const isList = parameters.get('sendInitialEvents') === 'true'
    const isMatched = parameters.has('resourceVersionMatch')
    if ((isList || isMatched) && !model.hasWatchList) {
      return refuse(status.invalid('resourceVersionMatch is forbidden for watch'))
    }
    if (isList && parameters.get('resourceVersionMatch') !== 'NotOlderThan') {
      return refuse(status.invalid('sendInitialEvents requires resourceVersionMatch NotOlderThan'))
    }
    if (version !== '' && !/^\d+$/.test(version)) {
      return refuse(status.badRequest(`Invalid value: "${version}": invalid resource version`))
    }
    const bookmarks = parameters.get('allowWatchBookmarks') === 'true'
    return {
      kind: 'stream',
      seconds: Number(parameters.get('timeoutSeconds') ?? 1800),
      bookmark: () => {
        const revision = bookmarks
          ? model.progressOf({ resource, from: Number(version) })
          : undefined
        return revision === undefined ? undefined : model.bookmarkOf(resource, revision)
      },
      begin: (send, end) => {
        const isFresh = version === '' || version === '0'
        const from = isFresh ? model.revision : Number(version)
        if (isFresh) {
          for (const object of model.all(resource).filter(matches)) {
            send({ type: 'ADDED', object: { ...model.kindOf(resource), ...object } })
          }
        }
        if (isList && bookmarks) send(model.bookmarkOf(resource, from, true))
        const watcher: Watcher = { resource, from, bookmarks, matches, send, end }
        return model.watch(watcher)
      },
    }
  }
}

interface Request {
  readonly resource: string
  readonly matches: (object: Stored) => boolean
  readonly parameters: URLSearchParams
}

function refuse(body: Status): Reply {
  return { kind: 'body', code: body.code, body }
}

function withoutKind({ kind: _kind, apiVersion: _apiVersion, ...object }: Stored): unknown {
  return object
}

export interface Place {
  readonly apiVersion: string
  readonly resource: string
  readonly namespace: string | undefined
  readonly name: string | undefined
}

/** Reads a path of a collection or an object. Undefined for any other path. */
export function placeOf(pathname: string): Place | undefined {
  const group = RESOURCES.find((each) => pathname.startsWith(`${groupPath(each)}/`))
  if (group === undefined) return undefined
  const steps = pathname
    .slice(groupPath(group).length + 1)
    .split('/')
    .map(decodeURIComponent)
  const { apiVersion } = group
  const [first, second = '', resource, name] = steps
  if (first === 'namespaces' && resource !== undefined) {
    return { apiVersion, resource, namespace: second, name }
  }
  return { apiVersion, resource: first ?? '', namespace: undefined, name: steps[1] }
}

function matcherOf(namespace: string | undefined, selector: string | null) {
  const [key = '', value] = selector?.split(/!?=/) ?? []
  const isEqual = selector?.includes('!=') !== true
  return (object: Stored): boolean => {
    if (namespace !== undefined && object.metadata.namespace !== namespace) return false
    if (value === undefined) return true
    const found = key
      .split('.')
      .reduce((at: unknown, step) => Reflect.get(Object(at), step), object)
    return (found === value) === isEqual
  }
}
