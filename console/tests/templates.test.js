// @ts-check
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const FOLDERS = ['.', 'parts', 'pages'];
/** htm leaves out the end of a line, so a space before or after a tag or a value must be `${' '}`. */
const GLUED = [
  /[\w.,:;]\n *<(a|code|strong|b|em|small)\b/g,
  /<\/(a|code|strong|b|em|small)>\n *\w/g,
  /[\w.,:;]\n *\$\{(?!' '|` |[^`\n]*html` )/g,
];

test('no template loses the space at the end of a line', () => {
  for (const folder of FOLDERS.map((name) => new URL(`../${name}/`, import.meta.url))) {
    for (const name of readdirSync(folder).filter((one) => one.endsWith('.js'))) {
      const text = readFileSync(new URL(name, folder), 'utf8');
      assert.deepEqual(GLUED.flatMap((glued) => text.match(glued) ?? []), [], name);
    }
  }
});
