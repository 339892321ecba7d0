// The two steps that both tellings share: a rotating name is one identity, and overlapping selectors make the labels
// of an address. They read `get ipcache`, which shows what the datapath was given.

import { prefixesOf, type CachedPrefix, type Namegate } from './namegate.ts'
import type { Story } from './story.ts'
import { BUCKET } from './world.ts'

export type Dig = (...args: readonly string[]) => Promise<string>

/** What both steps need; `prompt` is shown before each command. */
export interface NamesScene {
  readonly story: Story
  readonly namegate: Namegate
  readonly dig: Dig
  readonly prompt: string
}

export async function tellNames(scene: NamesScene): Promise<void> {
  await tellRotating(scene)
  await tellOverlap(scene)
}

async function tellRotating({ story, namegate, dig, prompt }: NamesScene): Promise<void> {
  story.heading(`A rotating name: ${BUCKET.size} addresses, ${BUCKET.perAnswer} in each answer`)
  const questions = Array.from({ length: BUCKET.size / BUCKET.perAnswer }, () => BUCKET.name)
  const answers = await dig('+short', ...questions)
  story.command(
    `${prompt} dig +short ${BUCKET.name} ${BUCKET.name} ...  (${questions.length} times)`,
    '',
  )
  const label = `fqdn:${BUCKET.name}`
  const learned = (await prefixesOf(namegate)).filter(({ labels }) => labels.includes(label))
  const identities = new Set(learned.map(({ identity }) => identity))
  story.table(
    ['answers', 'addresses answered', 'addresses in the datapath', 'identities'],
    [
      [
        questions.length,
        new Set(answers.trim().split('\n')).size,
        learned.length,
        identities.size,
      ].map(String),
    ],
  )
  story.check(
    learned.length === BUCKET.size && identities.size === 1,
    'one identity carries them all',
  )
}

async function tellOverlap({ story, namegate, dig, prompt }: NamesScene): Promise<void> {
  story.heading('Two overlapping selectors: *.cloud.example and www.cloud.example')
  for (const name of ['www.cloud.example', 'dev.cloud.example']) {
    story.command(
      `${prompt} dig +short ${name}`,
      (await dig('+short', name)).trim().split('\n').join(' '),
    )
  }
  const rows = (await prefixesOf(namegate))
    .filter(({ labels }) => labels.includes('fqdn:*.cloud.example'))
    .sort((a, b) => a.prefix.localeCompare(b.prefix))
  story.table(['prefix', 'identity', 'labels'], rows.map(rowOf))
  const [first, second, third] = rows
  story.check(
    rows.length === 3 &&
      first?.identity === second?.identity &&
      first?.identity !== third?.identity &&
      first?.labels.includes('fqdn:www.cloud.example') === true,
    'what www has is one identity with both labels; what only dev has is another',
  )
}

function rowOf({ prefix, identity, labels }: CachedPrefix): string[] {
  return [prefix, String(identity), labels.filter((label) => label.startsWith('fqdn:')).join(' ')]
}
