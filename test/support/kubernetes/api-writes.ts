// Carries out changes of an ApiModel as the API server does: create, merge if the version is the known one, delete one or all of a namespace,
// finalizers.

import { isMapping } from '../../../src/documents/source-document.ts'
import type { ApiModel, ModelObject, Stored } from './api-model.ts'
import { fieldAt } from '../../../src/kubernetes/cluster/fields.ts'
import { groupOf } from '../../../src/kubernetes/reflector/collections.ts'
import { placeOf, type Place } from './api-requests.ts'
import { status } from './api-statuses.ts'

export interface Written {
  readonly code: number
  readonly body: unknown
}

const NOT_FOUND: Written = { code: 404, body: status.noPath() }

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' }

/** An administrator has all rights. */
export function change(
  model: ApiModel,
  method: string,
  path: string,
  body: unknown,
  isAdministrator = false,
): Written {
  const place = placeOf(new URL(path, 'https://api.test').pathname)
  if (place === undefined) return NOT_FOUND
  const { resource, apiVersion } = place
  const verb = VERBS[method] ?? method
  if (!isAdministrator && model.denied.has(`${verb} ${resource}`)) {
    const refusal = status.forbidden(verb, resource, groupOf({ apiVersion, kind: '' }))
    return { code: refusal.code, body: refusal }
  }
  switch (method) {
    case 'POST':
      return create(model, place, body)
    case 'PATCH':
      return patch(model, place, body)
    case 'DELETE':
      return remove(model, place)
    default:
      return { code: 405, body: status.make(405, 'MethodNotAllowed', method) }
  }
}

function create(model: ApiModel, place: Place, body: unknown): Written {
  if (!model.defined.has(place.resource)) return NOT_FOUND
  const object = body as ModelObject
  const { name } = object.metadata
  if (find(model, { ...place, name }) !== undefined) {
    return { code: 409, body: status.make(409, 'AlreadyExists', `${name} exists`) }
  }
  const metadata = { ...object.metadata, ...namespaceOf(place) }
  return { code: 201, body: model.put(place.resource, { ...object, metadata }) }
}

function patch(model: ApiModel, place: Place, body: unknown): Written {
  const known = find(model, place)
  if (known === undefined) return NOT_FOUND
  const version = fieldAt(fieldAt(body, 'metadata'), 'resourceVersion')
  if (version !== undefined && version !== known.metadata.resourceVersion) {
    return { code: 409, body: status.conflict(known.metadata.name) }
  }
  const merged = merge(known, body) as ModelObject
  const isGoing = merged.metadata['deletionTimestamp'] !== undefined
  if (isGoing && merged.metadata['finalizers'] === undefined) {
    model.remove(place.resource, known.metadata.name, place.namespace)
    return { code: 200, body: known }
  }
  return { code: 200, body: model.put(place.resource, merged) }
}

function remove(model: ApiModel, place: Place): Written {
  const { resource, name, namespace } = place
  const all = model.all(resource).filter(({ metadata }) => metadata.namespace === namespace)
  const going = name === undefined ? all : all.filter(({ metadata }) => metadata.name === name)
  for (const object of going) {
    const { metadata } = object
    if (metadata['finalizers'] === undefined) model.remove(resource, metadata.name, namespace)
    else {
      const deletionTimestamp = '2026-01-01T00:00:00Z'
      model.put(resource, { ...object, metadata: { ...metadata, deletionTimestamp } })
    }
  }
  return name !== undefined && going.length === 0 ? NOT_FOUND : { code: 200, body: {} }
}

function find(model: ApiModel, { resource, name, namespace }: Place): Stored | undefined {
  return name === undefined ? undefined : model.find(resource, name, namespace)
}

function namespaceOf({ namespace }: Place): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace }
}

/** RFC 7396. */
function merge(known: unknown, changed: unknown): unknown {
  if (!isMapping(changed)) return changed
  const merged = new Map(Object.entries(isMapping(known) ? known : {}))
  for (const [key, value] of Object.entries(changed)) {
    if (value === null) merged.delete(key)
    else merged.set(key, merge(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}
