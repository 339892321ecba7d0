// REDIRECT by the printed iptables text, loaded by iptables-restore and ip6tables-restore.

import { loadText, unloadText } from '../../support/labs/iptables.ts'
import { redirectSuite } from '../../support/labs/redirect-suite.ts'

let text = ''

redirectSuite({
  title: 'redirect in a pod by the printed iptables text',
  install: async (namegate, pod) => void (text = await loadText(namegate, pod)),
  remove: async (_namegate, pod) => {
    unloadText(text, pod)
    await Promise.resolve()
  },
})
