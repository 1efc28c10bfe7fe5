// The files of a thread: the list beside the chat, a view of one file, and an upload.

import { all, path, post, put, send } from './api.js';
import { $, button, h, replace } from './view.js';

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const MAX_SHOWN = 200_000;

/** Shows the files of a thread. */
export async function showFiles({ name, tip }, signal) {
  // A thread without a session has no files.
  const { data } = tip ? await all(path`/v1/threads/${name}/files` + '?recursive=true', signal) : { data: [] };
  const files = data.filter((entry) => entry.kind === 'file');
  const rows = files.map(({ path: file, size }) =>
    h('li', {}, button(file, () => view(name, file), { id: `file-${file}` }), h('small', {}, sizeOf(size))));
  replace($('file-list'), ...(files.length ? rows : [h('li', {}, 'No files yet')]));
}

/** Shows a file in a dialog, from which it can be downloaded. */
async function view(thread, file) {
  const address = path`/v1/threads/${thread}/files/` + file.split('/').map(encodeURIComponent).join('/');
  const blob = await (await send('GET', address)).blob();
  // A link to the service would not have the key.
  const url = URL.createObjectURL(blob);
  const isPicture = PICTURES.includes(blob.type);
  $('file-title').textContent = file;
  $('file-content').replaceChildren(isPicture ? h('img', { src: url, alt: file })
    : h('pre', {}, (await blob.slice(0, MAX_SHOWN).text())));
  Object.assign($('download'), { href: url, download: file.split('/').at(-1) });
  $('file').onclose = () => URL.revokeObjectURL(url);
  $('file').showModal();
}

/** Adds a file to a thread. It replaces the file of this name. */
export async function upload({ name, tip }, agent, file) {
  if (!tip) {
    // Files belong to sessions, so a thread that has none yet gets an empty one.
    const { session_id } = await post('/v1/sessions', { agent });
    await put(path`/v1/threads/${name}`, { session_id, expected_session_id: null });
  }
  const base64 = await readBase64(file);
  await post(path`/v1/threads/${name}/files`, { changes: [{ path: file.name, content: { base64 } }] });
}

const readBase64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result.split(',')[1] ?? '');
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

const sizeOf = (bytes) => (bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`);
