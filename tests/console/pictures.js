// Makes a picture of each page in both themes: node pictures.js FOLDER

import { join } from 'node:path';
import { addressesOf, settle, start } from './browser.js';
import { seed } from './seed.js';

const { service, browser, end } = await start(1);
const values = await seed(service);
for (const path of await browser.routes()) {
  // A list is `runs`, and one of them `run`.
  const [, , section = 'overview'] = path.split('/');
  const name = path.includes(':') ? section.replace(/s$/, '') : section;
  const page = await browser.open(addressesOf(path, values)[0]);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await settle(page);
    await page.screenshot({ path: join(process.argv[2], `${name}-${colorScheme}.png`) });
  }
}
await browser.check();
await end();
