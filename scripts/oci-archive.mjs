// Makes an OCI archive of the folder into which buildah pushed an image. The archive also has the index of `docker save`, so that every
// Docker loads it. The configuration stays that of Docker's format: it has HEALTHCHECK, which OCI's own does not know. The
// same image makes the same octets.
//   node scripts/oci-archive.mjs FOLDER NAME:TAG ARCHIVE

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const [, , folder = '', name = '', archive = ''] = process.argv
const TYPE = 'application/vnd.oci.image'
const GZIP = 0x1f8b
const layout = mkdtempSync(join(tmpdir(), 'namegate-oci-'))

try {
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  writeLayout()
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  execFileSync('tar', ['-cf', archive, ...order, '-C', layout, '.'])
} finally {
  rmSync(layout, { recursive: true })
}

function writeLayout() {
  const pushed = JSON.parse(read('manifest.json').toString())
  const config = blob(`${TYPE}.config.v1+json`, Buffer.from(JSON.stringify(configOf(pushed))))
  const layers = pushed.layers.map(({ digest }) => {
    const octets = read(digest.replace('sha256:', ''))
    const packed = octets.readUInt16BE(0) === GZIP ? octets : gzipSync(octets, { level: 9 })
    return blob(`${TYPE}.layer.v1.tar+gzip`, packed)
  })
  const manifest = { schemaVersion: 2, mediaType: `${TYPE}.manifest.v1+json`, config, layers }
  const index = blob(manifest.mediaType, Buffer.from(JSON.stringify(manifest)))
  const annotations = {
    'io.containerd.image.name': `docker.io/library/${name}`,
    'org.opencontainers.image.ref.name': name.split(':')[1],
  }
  put('oci-layout', { imageLayoutVersion: '1.0.0' })
  put('index.json', {
    schemaVersion: 2,
    mediaType: `${TYPE}.index.v1+json`,
    manifests: [{ ...index, annotations }],
  })
  put('manifest.json', [
    { Config: pathOf(config), RepoTags: [name], Layers: layers.map((layer) => pathOf(layer)) },
  ])
  const size = (statSync(join(layout, pathOf(index))).size + sum([config, ...layers])) / 1e6
  console.log(`${archive}: ${name}, ${size.toFixed(1)} MB packed, ${index.digest}`)
}

/** Without what the build left of itself. */
function configOf(pushed) {
  const config = JSON.parse(read(pushed.config.digest.replace('sha256:', '')).toString())
  for (const each of ['container', 'container_config', 'docker_version']) delete config[each]
  return config
}

function blob(mediaType, octets) {
  const digest = `sha256:${createHash('sha256').update(octets).digest('hex')}`
  writeFileSync(join(layout, pathOf({ digest })), octets)
  return { mediaType, digest, size: octets.length }
}

function pathOf({ digest }) {
  return `blobs/${digest.replace(':', '/')}`
}

function put(path, value) {
  writeFileSync(join(layout, path), JSON.stringify(value))
}

function read(path) {
  return readFileSync(join(folder, path))
}

function sum(blobs) {
  return blobs.reduce((total, { size }) => total + size, 0)
}
