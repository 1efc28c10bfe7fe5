// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editLines, editsLines, parsePatch, parseUnified } from '../logic/diff.js';
import { duration, short, time, usd } from '../logic/format.js';
import { FrameReader } from '../logic/sse.js';
import { cut, exact, exactJson, firstLine, isShort, json, otherArguments, plain, withoutBase64 } from '../logic/text.js';
import { changeQuery, isFilePath, matchPath, readNumbers } from '../logic/urlstate.js';
import { Heights, rowsInView, slots } from '../logic/virtual.js';

test('numbers are short', () => {
  assert.deepEqual([0.2, 12, 1310, 8290, 61_500, 15_960_000].map(duration), ['<1 ms', '12 ms', '1.31 s', '8.29 s', '1 m 1 s', '4 h 26 m']);
  assert.deepEqual([null, 0, 0.0012, 0.0192, 12.5].map(usd), ['–', '$0', '$0.0012', '$0.019', '$12.50']);
  assert.equal(short('01a2fd8f-1377-7581-847a-0e0a2fe6d480'), '01a2…e6d480');
  assert.equal(time('2026-11-21T10:02:54.711843Z') - time('2026-11-21T10:02:54.711000Z') > 0.8, true);
});

test('frames are read from any chunks', () => {
  const text = ': keep-alive\n\nid: 7\r\nevent: a\r\ndata: {"x":\r\ndata: 1}\r\n\r\nevent: empty\n\ndata:no space\n\ndata: cut';
  for (const size of [1, 2, 3, 7, text.length]) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < text.length; at += size) frames.push(...reader.push(text.slice(at, at + size)));
    assert.deepEqual(frames, [{ id: '7', event: 'a', data: '{"x":\n1}' }, { id: null, event: 'message', data: 'no space' }]);
  }
  const reader = new FrameReader();
  const start = performance.now();
  for (let i = 0; i < 80_000; i++) reader.push('x'.repeat(64));
  assert.equal(reader.push('\ndata: y\n\n').length, 1);
  assert.ok(performance.now() - start < 2000, 'a line of 5 MB');
});

test('only rows in view are drawn, in slots that stay', () => {
  assert.deepEqual(rowsInView({ count: 8000, height: 28, scroll: 28_000, view: 280, around: 2 }), { from: 998, to: 1012 });
  assert.deepEqual(rowsInView({ count: 3, height: 28, scroll: 0, view: 600 }), { from: 0, to: 3 });
  const before = slots({ from: 10, to: 24 });
  const after = slots({ from: 11, to: 25 });
  const moved = after.filter(({ index, slot }) => before.find((one) => one.slot === slot)?.index !== index);
  assert.deepEqual(moved.map(({ index }) => index), [24]);
});

test('measured heights agree with a plain sum', () => {
  let seed = 7;
  const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  for (const count of [0, 1, 2, 63, 64, 1000]) {
    const plainHeights = Array(count).fill(40);
    const heights = new Heights(count, 40);
    for (let i = 0; i < count; i++) {
      const index = Math.floor(random() * count);
      heights.set(index, (plainHeights[index] = 10 + Math.floor(random() * 200)));
    }
    const sum = (/** @type {number} */ to) => plainHeights.slice(0, to).reduce((all, one) => all + one, 0);
    assert.equal(heights.total, sum(count));
    for (let i = 0; i < Math.min(count, 50); i++) {
      const index = Math.floor(random() * count);
      assert.equal(heights.offset(index), sum(index));
      assert.equal(heights.at(sum(index)), index);
      assert.equal(heights.at(sum(index + 1) - 1), index);
    }
    assert.deepEqual(heights.inView(0, 0).from, 0);
  }
});

test('the URL is the state', () => {
  const id = '01a2fd8f-1377-7581-847a-0e0a2fe6d480';
  assert.deepEqual(matchPath('/console/runs/:id', `/console/runs/${id}/`), { id });
  assert.deepEqual(matchPath('/console/threads/:name', '/console/threads/a%20b%2F..'), { name: 'a b/..' });
  assert.equal(matchPath('/console/threads/:name', '/console/threads/%E0%A4%A'), null);
  for (const bad of ['', '/a', `/..%2F${id}`, `/${id}%3Fx`, `/${id}x`, `/${id.toUpperCase()}`]) {
    assert.equal(matchPath('/console/runs/:id', `/console/runs${bad}`), null);
    assert.equal(matchPath('/console/compare/:left/:right', `/console/compare/${id}${bad}`), null);
  }
  assert.deepEqual(['a/..b/c', 'a/../b', './a', '/a', ''].map(isFilePath), [true, false, false, false, false]);
  assert.equal(changeQuery('?at=3.call&fold=1', { fold: null, x: 'a,b/c:d' }), '?at=3.call&x=a,b/c:d');
  assert.deepEqual([...readNumbers('3,7,x,-1')], [3, 7]);
});

test('hostile text becomes readable', () => {
  assert.equal(plain('\u001b[31mred\u001b[0m \u001b]0;title\u0007x\r\ny'), 'red x\ny');
  assert.equal(plain('a\u202egnp.exe\u0000\u200f'), 'a⟨U+202E⟩gnp.exe⟨U+0000⟩⟨U+200F⟩');
  const hidden = [
    0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x180e, 0x200b, 0x200c, 0x200d, 0x2028, 0x2029, 0x2060, 0x2066, 0x2800, 0x3164,
    0xe000, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d159, 0xe0041, 0xe0100,
  ].map((code) => String.fromCodePoint(code));
  const marks = hidden.map((one) => `⟨U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}⟩`);
  for (const show of [plain, exact]) assert.equal(show(`rm${hidden.join('x')}y`), `rm${marks.join('x')}y`);
  const emoji = '👨‍👩‍👧 ⚠️ 1️⃣ ❤️‍🔥 👩🏽‍🚀 é 日本 نص';
  assert.equal(exact(emoji), emoji);
  assert.equal(exact('1\ufe0f ⚠\ufe0f\ufe0f 🏴\u{e0067}'), '1⟨U+FE0F⟩ ⚠️⟨U+FE0F⟩ 🏴⟨U+E0067⟩');
  assert.deepEqual([plain('a\u00a0\u3000b'), exact('a\u00a0\u3000b')], ['a\u00a0\u3000b', 'a⟨U+00A0⟩⟨U+3000⟩b']);
  const value = { 'k\u200b': `a\u00a0b ${emoji} \u{e0041}\ud800\r` };
  assert.deepEqual([exactJson(value).match(/\\\w{5}/g), JSON.parse(exactJson(value))],
    [['\\u200B', '\\u00A0', '\\uDB40', '\\uDC41', '\\ud800'], value]);
  assert.deepEqual(cut('a😀b', 2), { shown: 'a', omitted: 3 });
  assert.equal(withoutBase64(`x ${'QUJD'.repeat(200)}== y`), 'x ⟨base64, 802 characters⟩ y');
  assert.ok(json({ data: 'A'.repeat(9999) }).length < 80);
  assert.equal(firstLine('\n\n  One\nTwo'), 'One');
});

test('differences are read as lines', () => {
  const [file, second] = parseUnified('--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n--- z\n') ?? [];
  assert.equal(file.path, 'x.py');
  assert.deepEqual(file.lines.slice(1, 4), [
    { kind: 'same', text: 'a', left: 1, right: 1 }, { kind: 'del', text: 'b', left: 2, right: undefined },
    { kind: 'add', text: 'c', left: undefined, right: 2 },
  ]);
  assert.deepEqual([second.path, second.lines.at(-1)?.text], ['y', '-- z']);
  assert.deepEqual(editLines('a\nb\nc\n', 'a\nx\ny\nc\n').map(({ kind, text }) => `${kind} ${text}`), ['same a', 'del b', 'add x', 'add y', 'same c']);
  const patch = parsePatch('*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Add File: b\n+new\n*** Delete File: c\n*** End Patch');
  assert.deepEqual(patch?.map(({ path, lines }) => [path, lines.length]), [['a', 3], ['b', 1], ['c', 1]]);
});

test('a difference is shown only if all of its lines are', () => {
  const names = '--- a/x\n+++ b/x\n';
  const inside = parseUnified(`${names}@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n@@ -9 +9 @@\n-d\n+e\n`);
  assert.deepEqual(inside?.map(({ path, lines }) => [path, lines.map(({ text }) => text)]),
    [['x', ['@@ -1,2 +1,2 @@', 'a', '-- b', '++ c', '@@ -9 +9 @@', 'd', 'e']]]);
  assert.equal(parseUnified('--- b/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n')?.[0].path, 'b/x');
  const hunk = '@@ -1 +1 @@\n-a\n+b\n';
  for (const bad of [
    `words\n${names}${hunk}`, `${names}${hunk}+c\n`, `${names}${hunk}rename from x\nrename to y\n`, names,
    `${names}${hunk}--- a/y\n+++ /dev/null\n`, `${names}@@ -1,9 +1,9 @@\n-a\n+b\n--- a/y\n+++ /dev/null\n`,
    `diff --git a/x b/x\nold mode 100644\nnew mode 100755\n${names}${hunk}`, `${names}@@ -1,9 +1 @@\n${hunk}`,
    `${names}${hunk}*** Begin Patch\n*** Delete File: y\n*** End Patch\n`,
    `words\n*** Begin Patch\n*** Delete File: y\n*** End Patch\n`, '*** Begin Patch\n*** Delete File: y\n',
    '*** Begin Patch\n*** Update File: y\n-a\n*** Rename File: z\n*** End Patch',
    '*** Begin Patch\n+a\n*** End Patch', '*** Begin Patch\n*** Add File: y\n+a\n*** End Patch\n+b',
  ]) assert.equal(parsePatch(bad), null, bad);
  assert.equal(parseUnified(`${names}@@ -1,9 +1,9 @@\n-a\n`, true)?.length, 1);
  assert.deepEqual(parsePatch('*** Begin Patch\n*** Delete File:y\n*** End Patch\n')?.map(({ path }) => path), ['y']);
});

test('arguments are shown with all that they say', () => {
  const edits = /** @type {any} */ ([{ old: 'a', new: 'b', all: true }, { old: 'c\n', new: 'c' }]);
  assert.deepEqual(editsLines(edits).map(({ text }) => text),
    ['Edit 1 {"all":true}', 'a', 'b', 'Edit 2', 'c', '\\ Only the old text ends with a line feed']);
  assert.deepEqual(otherArguments('edit_file', { path: 'x', edits, force: 1 }), { force: 1 });
  assert.deepEqual(otherArguments('write_file', { path: 'x', content: '', executable: false }), { executable: false });
  assert.deepEqual(otherArguments('shell', { command: 'ls' }), {});
  for (const args of [{ path: 'x', edits: [{ old: 1, new: '' }] }, { path: {}, edits: [] }, { path: 'x' }]) {
    assert.equal(otherArguments('edit_file', args), null);
  }
  assert.equal(otherArguments('toString', {}), null);
  const sizes = [{ a: 'x'.repeat(3900) }, { a: 'x'.repeat(4000) }, { a: 'x\n'.repeat(50) }, { a: 'x\n'.repeat(60) }, null];
  assert.deepEqual(sizes.map(isShort), [true, false, true, false, true]);
  assert.equal(exact('ls \u001b]0; rm x\r\n'), 'ls ⟨U+001B⟩]0; rm x\n');
});
