// @ts-check
// The question before something is removed. It names the thing.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { plain } from '../logic/text.js';
import { go } from '../router.js';
import { Act, Dialog, ProblemBox, Requests } from './ui.js';

/**
 * `to` is the page to go to, and the children say what stays.
 * @param {{ what: string, name: string, path: string, scope?: string, to: string, onClose: () => void,
 *   children?: any }} properties
 */
export function Removal({ what, name, path, scope, to, onClose, children }) {
  const [problem, setProblem] = useState(null);
  const call = { method: 'DELETE', path };
  return html`<${Dialog} title="Remove the ${what}?" onClose=${onClose}>
    <p>The name <strong>${plain(name)}</strong> is removed. ${children}</p><${ProblemBox} problem=${problem} />
    <div class="acts"><${Act} kind="danger" name="x" call=${call} scope=${scope} onDone=${() => go(to)}
      onProblem=${setProblem}>Remove ${plain(name)}<//><${Requests} calls=${{ Remove: call }} /></div><//>`;
}
