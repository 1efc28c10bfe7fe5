// Elements, errors, and texts for screen readers. Text of others becomes text nodes only.

export const $ = (id) => document.getElementById(id);

/** Makes an element. Strings become text, and values such as `null` and `false` nothing. */
export function h(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter(Boolean));
  return element;
}

/** Makes a button that shows an error if its action fails. */
export const button = (text, action, properties) =>
  h('button', { type: 'button', onclick: () => attempt(action), ...properties }, text);

/** Does something when a form is sent. */
export function onSubmit(form, action) {
  form.onsubmit = (event) => {
    event.preventDefault();
    action();
  };
}

/** Replaces the children of an element. The focus stays on the control with the same id. */
export function replace(element, ...children) {
  const { id } = document.activeElement;
  element.replaceChildren(...children);
  if (id && document.activeElement === document.body) $(id)?.focus();
}

/** Does something, and shows the error if it fails. */
export async function attempt(action) {
  try {
    await action();
  } catch (error) {
    showError(error);
  }
}

/** Shows an error in words, or takes the last one away. */
export function showError(error) {
  $('problem').textContent = error?.message ?? '';
  $('problem').hidden = !error;
  if (error?.status === 401) $('settings').showModal();
}

/** Lets screen readers read a text aloud. */
export function announce(text) {
  $('spoken').append(h('p', {}, text));
}

/** Changes the conversation. It stays scrolled to its end, if it was. */
export function stayAtEnd(change) {
  const { scrollHeight, scrollTop, clientHeight } = $('log');
  change();
  if (scrollHeight - scrollTop - clientHeight < 80) $('log').scrollTop = $('log').scrollHeight;
}

/** Writes JSON with line breaks. A model may have written something else. */
export function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** Returns the text of the parts of a message or of a result. */
export const textOf = (content) => content.map((part) => part.text ?? `[${part.type}]`).join('\n');
