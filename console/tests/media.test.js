// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeText, headOf, pictureType, toBase64 } from '../logic/media.js';

const bytes = (/** @type {number[]} */ ...values) => Uint8Array.from(values);

test('pictures are known by their bytes alone', () => {
  const kinds = ['\x89PNG\r\n\x1a\n', '\xff\xd8\xff\xe0', 'RIFF\n\n\0\0WEBPVP8 ', 'GIF89a', '<svg onload="x">', 'RIFF', ''];
  const types = kinds.map((head) => pictureType(Uint8Array.from(head, (char) => char.charCodeAt(0))));
  assert.deepEqual(types, ['image/png', 'image/jpeg', 'image/webp', null, null, null, null]);
  assert.equal(pictureType(headOf(btoa('\x89PNG\r\n\x1a\n and more bytes of it'))), 'image/png');
  assert.deepEqual([headOf('no base64 §'), headOf('')].map((head) => head.length), [0, 0]);
});

test('bytes are text, text that was cut, or neither', () => {
  assert.equal(decodeText(new TextEncoder().encode('\ufeffa😀').subarray(0, 6), true), '\ufeffa');
  assert.equal(decodeText(bytes(97, 0xf0, 0x9f), false), null);
  assert.deepEqual([bytes(), bytes(65, 13, 10), bytes(65, 0), bytes(0xff, 0xfe)].map((one) => decodeText(one, false)), ['', 'A\r\n', null, null]);
  const large = new Uint8Array(100_000).fill(7);
  assert.deepEqual([...Buffer.from(toBase64(large), 'base64')], [...large]);
});
