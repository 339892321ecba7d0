// The objects that `kubectl kustomize` makes of deploy/kubernetes.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'

const FOLDER = 'deploy/kubernetes'

export interface Manifest {
  readonly kind: string
  readonly value: unknown
}

/** The reason why manifests cannot be built here, or undefined. The kubectl of Debian 12 is too old: its kustomize is of 2019. */
export function canBuildManifests(): string | undefined {
  const { status } = spawnSync('kubectl', ['kustomize', `${FOLDER}/overlays/audit-first`])
  return status === 0 ? undefined : 'kubectl 1.21 or newer is not installed'
}

/** The text of an overlay, with a component if one is given. */
export function overlayText(overlay: string, component?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ng-test-overlay-'))
  try {
    const path = (part: string): string => relative(folder, resolve(FOLDER, part))
    const components = component === undefined ? [] : [path(`components/${component}`)]
    const kustomization = { resources: [path(`overlays/${overlay}`)], components }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    return execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export function overlay(name: string, component?: string): readonly Manifest[] {
  return parseAllDocuments(overlayText(name, component)).map((document) => {
    const value: unknown = document.toJS()
    return { kind: z.object({ kind: z.string() }).parse(value).kind, value }
  })
}

/** The one object of a kind, in a shape. */
export function objectOf<T>(manifests: readonly Manifest[], kind: string, shape: z.ZodType<T>): T {
  return shape.parse(manifests.find((each) => each.kind === kind)?.value)
}

/** The text without the fields of an init container that keeps running. They need Kubernetes 1.29, and the API server is of 1.20. */
export function withoutNewFields(text: string): string {
  const documents = parseAllDocuments(text)
  for (const document of documents) {
    for (const i of [0, 1, 2]) {
      for (const key of ['restartPolicy', 'startupProbe', 'livenessProbe']) {
        const path = ['spec', 'template', 'spec', 'initContainers', i, key]
        if (document.hasIn(path)) document.deleteIn(path)
      }
    }
  }
  return documents.map(String).join('---\n')
}
