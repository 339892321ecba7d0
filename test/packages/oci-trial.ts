// The image under trial: an unpacked archive, its containers at a site, and their shared folders. `close` ends and removes all of it, also
// if this process ends early.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Container, unpack, type Image } from './container.ts'
import type { Form } from './oci-forms.ts'
import { PackageSite, SETTINGS } from './site.ts'
import { traces } from './traces.ts'

const BPFFS = '/sys/fs/bpf'

export class OciTrial {
  readonly site = new PackageSite()
  readonly image: Image
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-oci-'))
  readonly #bpffs = join(this.#folder, 'bpf')
  readonly #shared = join(this.#folder, 'shared')
  readonly #containers: Container[] = []

  constructor(archive: string) {
    mkdirSync(this.#bpffs)
    execFileSync('mount', ['-t', 'bpf', 'bpf', this.#bpffs])
    process.once('exit', () => this.#cleanUp())
    this.image = unpack(archive, join(this.#folder, 'image'))
  }

  /** The last started container. */
  get last(): Container {
    const container = this.#containers.at(-1)
    if (container === undefined) throw new Error('no container was started')
    return container
  }

  /** The same image with another version, in its own files. */
  newer(version: string): Image {
    const root = join(this.#folder, 'newer')
    execFileSync('cp', ['-a', this.image.root, root])
    const path = join(root, 'opt/namegate/package.json')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace(/"version": ".*"/, `"version": "${version}"`))
    return { ...this.image, root }
  }

  /** A folder for /etc/namegate that protects the pod of the site. */
  settings(configuration: string): string {
    const folder = join(this.#folder, 'etc')
    const files = { ...SETTINGS, 'policy.yaml': SETTINGS['policies/shop.yaml'] ?? '' }
    for (const [name, text] of Object.entries({ ...files, 'namegate.yaml': configuration })) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    return folder
  }

  /** Starts a container in the node. `settings` is the folder for /etc/namegate; default: the image's own. */
  start(
    { image = this.image, ...form }: Form & { readonly image?: Image },
    settings?: string,
  ): Container {
    const shared = form.mounts.filter((path) => path !== '/etc/namegate')
    const container = new Container(
      {
        ...form,
        image,
        host: this.site.node,
        args: form.args.length > 0 ? form.args : image.config.Cmd,
        user: form.user === undefined ? 0 : this.idOf(form.user),
        mounts: Object.fromEntries(shared.map((path) => [path, this.#volume(path)])),
        readOnlyMounts: {
          '/etc/resolv.conf': this.site.resolvConf,
          ...(settings === undefined ? {} : { '/etc/namegate': settings }),
        },
      },
      this.#folder,
    )
    this.#containers.push(container)
    return container
  }

  /** The JSON output of a command in a container. */
  async json(container: Container, ...args: readonly string[]): Promise<unknown> {
    const { stdout, stderr } = await container.exec('namegate', ...args, '-o', 'json')
    if (stdout === '') throw new Error(`namegate ${args.join(' ')}: ${stderr}`)
    return JSON.parse(stdout)
  }

  /** Removes all containers and their shared folders. Returns the number of files in these folders. */
  async remove(): Promise<number> {
    for (const each of this.#containers.splice(0)) await each.remove()
    const names = existsSync(this.#shared) ? readdirSync(this.#shared, { recursive: true }) : []
    rmSync(this.#shared, { recursive: true, force: true })
    return names.length
  }

  traces(): readonly string[] {
    return traces(this.site, this.#bpffs)
  }

  /** The number of a user in the image. */
  idOf(user: string): number {
    const text = readFileSync(join(this.image.root, 'etc/passwd'), 'utf8')
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${user}:`))
        ?.split(':')[2],
    )
  }

  sizeMb(): number {
    const text = execFileSync('du', ['-s', '--block-size=1000000', this.image.root])
    return parseInt(text.toString(), 10)
  }

  async close(): Promise<void> {
    await this.remove()
    await this.site.close()
    this.#cleanUp()
  }

  /** Makes a volume with the owner and the mode of the folder in the image. */
  #volume(path: string): string {
    if (path === BPFFS) return this.#bpffs
    const folder = join(this.#shared, path)
    if (existsSync(folder)) return folder
    mkdirSync(folder, { recursive: true })
    const { uid, gid, mode } = statSync(join(this.image.root, path))
    chownSync(folder, uid, gid)
    chmodSync(folder, mode & 0o7777)
    return folder
  }

  #cleanUp(): void {
    if (!existsSync(this.#folder)) return
    const mounts = readFileSync('/proc/mounts', 'utf8')
    if (mounts.includes(` ${this.#bpffs} `)) execFileSync('umount', [this.#bpffs])
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
