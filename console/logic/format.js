// @ts-check
// Numbers, times and ids as people read them. Pure.

/** Formats a duration. @param {number} ms */
export function duration(ms) {
  if (ms < 1) return '<1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const [hours, minutes, seconds] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map(Math.floor);
  return hours ? `${hours} h ${minutes} m` : `${minutes} m ${seconds} s`;
}

/** Formats a length of time coarsely, such as the age of a row. @param {number} ms */
export function span(ms) {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Formats US dollars; null is an unknown price. @param {number | null | undefined} value */
export function usd(value) {
  if (value == null) return '–';
  if (value === 0) return '$0';
  return `$${value.toFixed(value < 0.01 ? 4 : value < 10 ? 3 : 2)}`;
}

/** @param {number} value */
export const number = (value) => value.toLocaleString('en');

/** Formats a count with its noun: `1 step`, `2 steps`. @param {number} value @param {string} noun */
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

/** @param {number} value */
export function bytes(value) {
  if (value < 1024) return `${value} B`;
  return value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / (1 << 20)).toFixed(1)} MiB`;
}

/** Shortens an id to what people compare: its beginning and its end. @param {string} id */
export const short = (id) => (id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);

/** Parses an RFC 3339 time to milliseconds with microseconds as a fraction. @param {string} text */
export function time(text) {
  const micros = /\.\d{3}(\d{3})/.exec(text);
  return Date.parse(text) + (micros ? Number(micros[1]) / 1000 : 0);
}

/** Formats a time in the reader's zone. @param {string} text */
export const moment = (text) => new Date(text).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
