// @ts-check
// Makes hostile text harmless to read: no ANSI codes, no invisible characters, no megabytes. Pure.

/** The most characters of a payload that are shown before somebody asks for all. */
export const MOST = 64 * 1024;
/** A text of base64 that is too long to be a word or a hash. */
const BASE64 = /[A-Za-z0-9+/_-]{512,}={0,2}/g;
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
/**
 * Characters without a picture, other than tab and line feed: controls, marks that turn or join text, fillers, and
 * letters that look blank. Those that join an emoji are seen as the emoji.
 */
const INVISIBLE = new RegExp([
  /(?![\t\n]|(?<=\p{ExtPict})\ufe0f|(?<=[#*\d])\ufe0f\u20e3|(?<=\p{ExtPict}[\ufe0f\p{EMod}]?)\u200d\p{ExtPict})/u,
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]/u,
].map(({ source }) => source).join(''), 'gu');
/** Spaces that are not the space of the keyboard. */
const SPACES = /(?! )\p{Zs}/gu;

const hex = (code) => code.toString(16).toUpperCase().padStart(4, '0');
/** @param {string} character */
const mark = (character) => `⟨U+${hex(character.codePointAt(0))}⟩`;
const visible = (text) => text.replaceAll('\r\n', '\n').replace(INVISIBLE, mark);

/** Shows invisible characters and unusual spaces as their code points, and leaves out nothing. @param {string} text */
export const exact = (text) => visible(text).replace(SPACES, mark);

/** Removes ANSI codes, and shows what else is invisible. @param {string} text */
export const plain = (text) => visible(text.replace(ANSI, ''));

/** Writes a value as JSON that has escapes for all that `exact` marks. @param {unknown} value */
export const exactJson = (value) => [INVISIBLE, SPACES].reduce(
  (text, marked) => text.replace(marked, (all) => all.replace(/[^]/g, (unit) => `\\u${hex(unit.charCodeAt(0))}`)),
  JSON.stringify(value, null, 2) ?? 'null');

/** Replaces base64 by its length. @param {string} text */
export const withoutBase64 = (text) => text.replace(BASE64, (data) => `⟨base64, ${data.length} characters⟩`);

/**
 * Cuts a text. Returns how many characters were left out.
 * @param {string} text @returns {{ shown: string, omitted: number }}
 */
export function cut(text, most = MOST) {
  if (text.length <= most) return { shown: text, omitted: 0 };
  const whole = /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most;
  return { shown: text.slice(0, whole), omitted: text.length - whole };
}

/** Writes a value as JSON for people, without base64. @param {unknown} value */
export const json = (value) => withoutBase64(JSON.stringify(value, null, 2) ?? 'null');

/** Parses the arguments of a call, which a model may have written wrongly. @param {unknown} text */
export function parseJson(text) {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the first line that has words, for a title. @param {string} text */
export const firstLine = (text, most = 160) => cut(plain(/\S[^\n]*/.exec(text)?.[0] ?? ''), most).shown;

/** Whether a value as JSON is seen whole beside others. @param {unknown} value */
export function isShort(value) {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.length <= 4000 && text.split(/\n|\\n/).length <= 60;
}

const isText = (value) => typeof value === 'string';
/** The arguments that a tool's own view shows, and what each must be for it. */
const SHOWN = {
  shell: { command: isText },
  apply_patch: { patch: isText },
  edit_file: {
    path: isText,
    edits: (edits) => Array.isArray(edits) && edits.every((edit) => isText(edit?.old) && isText(edit?.new)),
  },
  write_file: { path: isText, content: isText },
};

/**
 * Returns the arguments that the own view of a tool leaves out; null if it can't show the others.
 * @param {string} tool @param {any} args @returns {Record<string, unknown> | null}
 */
export function otherArguments(tool, args) {
  const shown = Object.hasOwn(SHOWN, tool) ? Object.entries(SHOWN[tool]) : [];
  if (!shown.length || !shown.every(([name, isFit]) => isFit(args[name]))) return null;
  return Object.fromEntries(Object.entries(args).filter(([name]) => !Object.hasOwn(SHOWN[tool], name)));
}
