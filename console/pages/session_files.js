// @ts-check
// The files of a session: one directory at a time, a viewer, the changes since the parent, and changes of one's own.

import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { getBytes } from '../api.js';
import { bytes as size, count } from '../logic/format.js';
import { decodeText, pictureType, toBase64 } from '../logic/media.js';
import { MOST, plain } from '../logic/text.js';
import { changeQuery, isFilePath } from '../logic/urlstate.js';
import { icon } from '../parts/icons.js';
import { Picture } from '../parts/message.js';
import { FileChanges } from '../parts/payload.js';
import { Act, Button, focusNew, ProblemBox, Requests, usePost, useRead } from '../parts/ui.js';
import { address, go } from '../router.js';

/** The most bytes of a file that the page shows. Larger ones are for downloads. */
const ALL = 8 << 20;

/** @param {string} file */
const directoryOf = (file) => file.split('/').slice(0, -1).join('/');
const lastName = (file) => plain(file.split('/').at(-1) ?? '');
const escaped = (file) => file.split('/').map(encodeURIComponent).join('/');

/** @param {{ session: any, path: string }} properties */
export function Files({ session, path }) {
  const { query, search } = address.value;
  const asked = query.get('file');
  const file = asked && isFilePath(asked) ? asked : null;
  const directory = query.get('dir') ?? directoryOf(file ?? '');
  const shows = query.get('show');
  const parent = session.parent_session_id;
  const at = (changes) => changeQuery(search, { show: null, file: null, ...changes });
  const shown = (show, words) => html`<a class="button" href=${at({ show, dir: directory })}
    aria-current=${shows === show ? 'true' : null}>${words}</a>`;
  const other = shows === 'changes' ? html`<${Changes} session=${session} />`
    : shows === 'new' && html`<${Editor} path=${path} file="" text="" />`;
  return html`<div class="browse">
    <div class="dirs"><div class="acts">
      ${parent && shown('changes', 'Changes')}${shown('new', 'New file')}
      <a class="button" href=${`${path}/archive?format=zip`} download
        title=${`GET ${path}/archive`}>All as zip</a></div>
      <${Directory} key=${directory} path=${path} directory=${directory} file=${file} at=${at} /></div>
    <div class="viewer">${other || (file ? html`<${Viewer} key=${file} path=${path} file=${file} />`
      : html`<p class="muted">Choose a file.</p>`)}</div></div>`;
}

/** @param {{ path: string, directory: string, file: string | null, at: (changes) => string }} properties */
function Directory({ path, directory, file, at }) {
  const [cursor, setCursor] = useState('');
  const read = `${path}/files?limit=200&path=${encodeURIComponent(directory)}${cursor && `&cursor=${cursor}`}`;
  const { value, problem } = useRead(directory ? read : read.replace('&path=', ''));
  const names = directory ? directory.split('/') : [];
  const crumb = (name, key) => html`<span key=${key}> / <a class="link"
    href=${at({ dir: names.slice(0, key + 1).join('/') })}>${plain(name)}</a></span>`;
  const row = (one) => {
    const isDirectory = one.kind === 'directory';
    const note = { directory: count(one.files ?? 0, 'file'), symlink: `→ ${plain(one.target ?? '')}` }[one.kind]
      ?? size(one.size ?? 0);
    return html`<li key=${one.path}><a href=${at(isDirectory ? { dir: one.path } : { dir: directory, file: one.path })}
      aria-current=${one.path === file ? 'true' : null}>${icon(isDirectory ? 'chevron' : 'file')}
      <span>${lastName(one.path)}</span><small>${one.executable && 'executable, '}${note}</small></a></li>`;
  };
  return html`<p class="where"><a class="link" href=${at({ dir: '' })}>Files</a>${names.map(crumb)}</p>
    <${ProblemBox} problem=${problem} />
    ${value && !value.data.length && html`<p class="note">There are no files here.</p>`}
    <ul>${value?.data.map(row)}</ul>
    ${value?.next_cursor && html`<${Button} onClick=${() => setCursor(value.next_cursor)}>Next page<//>`}
    ${cursor && html`<${Button} onClick=${() => setCursor('')}>First page<//>`}`;
}

/** @param {{ session: any }} properties */
function Changes({ session }) {
  const { parent_session_id: parent, session_id: id } = session;
  const read = `/v1/sessions/${parent}/diff/${id}`;
  const { value, problem } = useRead(parent && read);
  return html`<header class="fhead"><span>Since the parent</span><span class="grow"></span>
      <${Requests} calls=${{ Compare: { method: 'GET', path: read } }} /></header>
    <${ProblemBox} problem=${problem} />
    ${value && !value.files.length && html`<p class="note">No file differs from the parent's.</p>`}
    ${value && html`<${FileChanges} files=${value.files} />`}
    ${value && !value.complete && html`<p class="note">There are more differences than are shown.</p>`}`;
}

/** Reads the beginning of a file, or all of it. @param {string} path @param {number} most */
function useFile(path, most) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  useEffect(() => {
    const stop = new AbortController();
    getBytes(path, most, stop.signal).then(
      (file) => setState({ file }), (problem) => stop.signal.aborted || setState({ problem }));
    return () => stop.abort();
  }, [path, most]);
  return state;
}

/** @param {{ path: string, file: string }} properties */
function Viewer({ path, file }) {
  const [most, setMost] = useState(MOST);
  const [isEditing, setEditing] = useState(false);
  const read = `${path}/files/${escaped(file)}`;
  const { file: content, problem } = useFile(read, most);
  const isWhole = content && content.bytes.length === content.size;
  const text = useMemo(() => content && decodeText(content.bytes, !isWhole), [content]);
  const picture = content && pictureType(content.bytes);
  // A field of a form has line feeds only.
  const canEdit = isWhole && text != null && (!text.includes('\r') || /^(?:[^\r\n]|\r\n)*$/.test(text));
  const lines = !text ? 0 : text.split('\n').length - Number(text.endsWith('\n'));
  const what = text == null ? picture ?? 'binary' : isWhole ? count(lines, 'line') : 'the beginning';
  if (isEditing && canEdit) {
    return html`<${Editor} path=${path} file=${file} text=${text} onBack=${() => setEditing(false)} />`;
  }
  return html`<header class="fhead">${icon('file')}<span>${plain(file)}</span>
      ${content && html`<em>${size(content.size)}, ${what}</em>`}
      <${Button} name="pen" disabled=${!canEdit} onClick=${() => setEditing(true)}
        title=${canEdit ? 'Makes a new session' : 'Only whole texts can be edited here'}>Edit<//>
      <a class="button" href=${read} download=${file.split('/').at(-1)}>Download</a>
      <${Requests} calls=${{ Read: { method: 'GET', path: read } }} /></header>
    <${ProblemBox} problem=${problem} />
    ${text != null && html`<${Numbered} text=${text} />`}
    ${content && text == null && !picture && html`<p class="note">This is no text.</p>`}
    ${picture && html`<${Picture} name=${`${plain(file)}, ${picture}, ${size(content.size)}`}
      src=${isWhole ? `data:${picture};base64,${toBase64(content.bytes)}` : null} />`}
    ${content && !isWhole && (most < ALL && (text != null || picture)
      ? html`<button type="button" class="more" onClick=${() => setMost(ALL)}>Show all: ${size(content.size)}</button>`
      : html`<p class="note">Download the file to see the rest.</p>`)}`;
}

/** @param {{ text: string }} properties */
function Numbered({ text }) {
  const lines = useMemo(() => plain(text).replace(/\n$/, ''), [text]);
  const numbers = useMemo(() => lines.split('\n').map((_, index) => index + 1).join('\n'), [lines]);
  return html`<div class="source" tabindex="0" role="group" aria-label="Text of the file">
    <pre class="numbers" aria-hidden="true">${numbers}</pre><pre>${lines}</pre></div>`;
}

/**
 * Writes a file: into a new session, to which the page moves.
 * @param {{ path: string, file: string, text: string, onBack?: () => void }} properties
 */
function Editor({ path, file, text, onBack }) {
  const { query } = address.value;
  const [name, setName] = useState(file || (query.get('dir') ? `${query.get('dir')}/` : ''));
  const [content, setContent] = useState(text.replaceAll('\r\n', '\n'));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const written = text.includes('\r\n') ? content.replaceAll('\n', '\r\n') : content;
  const call = usePost()(`${path}/files`, { changes: [{ path: name, content: written }] });
  const removal = usePost()(`${path}/files`, { changes: [{ path: file, delete: true }] });
  const dir = directoryOf(name);
  const move = (shown) => (next) =>
    go(`/console/sessions/${next.session_id}${changeQuery('', { view: 'files', dir, ...shown })}`);
  return html`<label>Path<input class="one" value=${name} disabled=${!!file}
      onInput=${({ target }) => setName(target.value)} /></label>
    <label>Content<textarea class="editor" rows="24" spellcheck="false" value=${content} ref=${focusNew}
      onInput=${({ target }) => setContent(target.value)}></textarea></label>
    <p class="muted">A new session gets the change. This one stays as it is.</p>
    <${ProblemBox} problem=${problem} />
    <div class="acts"><${Act} kind="primary" name="check" call=${call}
        disabled=${!name || (!!file && written === text)} onDone=${move({ file: name })}
        onProblem=${setProblem}>Write the file<//>
      ${file && html`<${Act} kind="danger" name="x" call=${removal} onDone=${move({})}
        onProblem=${setProblem}>Delete the file<//>`}
      ${onBack && html`<${Button} onClick=${onBack}>Back<//>`}<${Requests} calls=${{ Write: call }} /></div>`;
}
