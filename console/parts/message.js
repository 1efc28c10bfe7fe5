// @ts-check
// A message of a session: text, reasoning, calls and results of tools, and media, which are shown only when asked for.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { bytes } from '../logic/format.js';
import { headOf, pictureType } from '../logic/media.js';
import { cut, MOST, parseJson, plain } from '../logic/text.js';
import { icon } from './icons.js';
import { Arguments, Code, JsonValue, Markdown, Result } from './payload.js';

/** The parts of a message. @param {{ content: any[] }} properties */
export const MessageParts = ({ content }) => html`<div class="parts">
  ${content.length ? content.map((part, key) => html`<${PartView} key=${key} part=${part} />`)
    : html`<p class="muted">empty</p>`}</div>`;

/** Text of more than 64 KiB is not formatted, and scrolls in a box. @param {{ text: string }} properties */
const Words = ({ text }) => (text.length > MOST ? html`<${Code} text=${text} />` : html`<${Markdown} text=${text} />`);

/** @param {{ part: any }} properties */
function PartView({ part }) {
  switch (part.type) {
    case 'text':
      return html`<${Words} text=${String(part.text)} />${part.citations?.length > 0
        && html`<${Folded} title=${`Sources: ${part.citations.length}`}><${JsonValue} value=${part.citations} /><//>`}`;
    case 'reasoning':
      return part.text ? html`<${Folded} title="Reasoning"><div class="think"><${Words} text=${part.text} /></div><//>`
        : html`<p class="muted">Reasoning that the provider does not show.</p>`;
    case 'refusal':
      return html`<p class="problem">${cut(plain(part.text)).shown}</p>`;
    case 'tool_call':
      return html`<section class="use"><h3>${icon('tool')}<span>${plain(part.name)}</span></h3>
        <${Arguments} tool=${part.name} args=${parseJson(part.arguments)} text=${part.arguments} /></section>`;
    case 'tool_result':
      return html`<${ToolResult} part=${part} />`;
    case 'image':
    case 'document':
      return html`<${Media} part=${part} />`;
    default:
      return html`<${Folded} title=${`Part of the type ${part.type}`}><${JsonValue} value=${part} /><//>`;
  }
}

/** @param {{ part: any }} properties */
function ToolResult({ part }) {
  const content = part.content ?? [];
  const isMedia = ({ type }) => type === 'image' || type === 'document';
  const rest = content.filter((one) => !isMedia(one));
  return html`<section class="use"><h3>${icon('tool')}<span>${plain(part.name)}</span>
      ${part.is_error && html`<span class="status failed">failed</span>`}</h3>
    ${rest.some(({ text, type }) => text || type !== 'text') ? html`<${Result} content=${rest} />`
      : !content.some(isMedia) && html`<p class="muted">no text</p>`}
    ${content.filter(isMedia).map((one, key) => html`<${Media} key=${key} part=${one} />`)}</section>`;
}

/** Something whose content is made only when it is opened. @param {{ title: string, children?: any }} properties */
function Folded({ title, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${plain(title)}</summary>${isOpen && children}</details>`;
}

/**
 * An image or a document. Addresses are never followed, and only bytes that are a PNG, a JPEG or a WebP are shown.
 * @param {{ part: any }} properties
 */
function Media({ part }) {
  const { kind, url, media_type, data = '', provider, file_id } = part.source ?? {};
  const type = kind === 'base64' ? pictureType(headOf(String(data))) : null;
  const place = { base64: `${media_type}, ${bytes(Math.floor(data.length * 0.75))}`, url }[kind]
    ?? `${provider}: ${file_id}`;
  const name = cut(plain([part.name ?? part.type, place].join(', ')), 300).shown;
  return html`<${Picture} name=${name} src=${type && `data:${type};base64,${data}`} />`;
}

/** A placeholder for a picture, or for what can't be shown. @param {{ name: string, src: string | null }} properties */
export function Picture({ name, src }) {
  const [isShown, setShown] = useState(false);
  if (isShown && src) return html`<img class="picture" src=${src} alt=${name} />`;
  return html`<p class="media">${icon('file')}<span>${name}</span>
    ${src && html`<button type="button" onClick=${() => setShown(true)}>Show</button>`}</p>`;
}
