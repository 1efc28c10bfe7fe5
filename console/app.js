// @ts-check
// Starts the console.

import { render } from 'preact';
import { html } from 'htm/preact';
import { needsKey, watchSilence } from './api.js';
import { readIdentity } from './identity.js';
import { startKeys } from './keys.js';
import { startChanges } from './live.js';
import { countOpenCalls } from './parts/open_calls.js';
import { startRouter } from './router.js';
import { setTheme, Shell } from './shell.js';

setTheme();
startRouter();
startKeys();
watchSilence();
await readIdentity();
if (!needsKey.value) {
  startChanges();
  countOpenCalls();
}
render(html`<${Shell} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
