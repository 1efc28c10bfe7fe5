// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMarkdown } from '../logic/markdown.js';

/** Writes the nodes as short text, in which only links and code have marks. @param {any} node @returns {string} */
function show(node) {
  if (Array.isArray(node)) return node.map(show).join('');
  const inner = show(node.inline ?? node.blocks ?? []);
  switch (node.type) {
    case 'text': return node.text;
    case 'break': return '⏎';
    case 'link': return `<${inner}|${node.href}>`;
    case 'code': return `{${node.language ?? ''}${node.text}}`;
    case 'heading': return `h${node.level}(${inner})`;
    case 'list': return `${node.start ?? 'ul'}[${node.items.map(show).join('|')}]`;
    case 'table': return `table[${[node.head, ...node.rows].map((row) => row.map(show).join('|')).join('/')}]`;
    case 'rule': return '---';
    default: return `${node.type}(${inner})`;
  }
}
const cases = [
  ['# Title #\n\nwords *em* **strong** ~~del~~ `a*b`', 'h1(Title)paragraph(words em(em) strong(strong) del(del) {a*b})'],
  ['- a\n- b\n  - c\n\n1. x\n2) y', 'ul[paragraph(a)|paragraph(b)ul[paragraph(c)]]1[paragraph(x)|paragraph(y)]'],
  ['```js\n<b>\n```\nafter', '{js<b>}paragraph(after)'],
  ['```\nno end', '{no end}'],
  ['> q\n> r', 'quote(paragraph(q\nr))'],
  ['a | b\n--|--\n1 | 2', 'table[a|b/1|2]'],
  ['snake_case_name and 2 * 3 * 4', 'paragraph(snake_case_name and 2 * 3 * 4)'],
  ['[x](https://a.example/b) <https://c.example> https://d.example/e.', 'paragraph(<x|https://a.example/b> <https://c.example|https://c.example> <https://d.example/e|https://d.example/e>.)'],
  ['\\*no\\* end  \nnext', 'paragraph(*no* end  ⏎next)'],
];

test('reads the Markdown that models write', () => {
  for (const [text, expected] of cases) assert.equal(show(parseMarkdown(text)), expected);
});

test('hostile text stays text', () => {
  for (const text of [
    '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '![x](https://evil.example/a.png)',
    '[x](javascript:alert(1))', '[x](JaVaScRiPt:alert(1))', '[x](data:text/html,y)', '[x](//evil.example)', '<javascript:x>',
    '[a](vbscript:x)', '[x]( java\tscript:alert(1))',
  ]) {
    const links = JSON.stringify(parseMarkdown(text)).match(/"href":"[^"]*"/g) ?? [];
    assert.ok(links.every((link) => link.startsWith('"href":"https://')), `${text}: ${links}`);
    assert.ok(!JSON.stringify(parseMarkdown(text)).includes('"html"'));
  }
});

test('no long or deep text takes time that grows with its square', () => {
  // Linear time is less than a second, and the square of the length is minutes.
  const [long, bound] = [100_000, 20_000];
  for (const text of [
    '*'.repeat(long), '**a '.repeat(long / 4), '['.repeat(long), '[a]('.repeat(long / 4), '`a'.repeat(long / 2), '> '.repeat(long / 2),
    '- '.repeat(long / 2), '  '.repeat(long) + 'x', '# ' + ' '.repeat(long) + 'x', '- - '.repeat(long / 4) + 'x', '| - '.repeat(long / 4),
    'a|b\n' + ' '.repeat(long) + 'x', '_a_'.repeat(long / 3), '<https://'.repeat(long / 9), '- a\n'.repeat(long / 4), '\\'.repeat(long),
    '1. a\n\n'.repeat(long / 6), '`'.repeat(long),
  ]) {
    const start = performance.now();
    parseMarkdown(text);
    const took = performance.now() - start;
    assert.ok(took < bound, `${text.slice(0, 12)} took ${took} ms`);
  }
});
