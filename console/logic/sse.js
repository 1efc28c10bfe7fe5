// @ts-check
// Reads `text/event-stream` from chunks of text. `EventSource` can't send headers, so streams come from `fetch`.

/** @typedef {{ id: string | null, event: string, data: string }} Frame */

/** Splits chunks into frames. Comments and frames without data are skipped. */
export class FrameReader {
  /** @type {string[]} The chunks of a line that has no end yet. */
  #line = [];
  /** @type {string[]} */
  #data = [];
  #event = 'message';
  /** @type {string | null} */
  #id = null;

  /** Adds a chunk, and returns the frames that it completes. @param {string} chunk @returns {Frame[]} */
  push(chunk) {
    /** @type {Frame[]} */
    const frames = [];
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      this.#line.push(chunk.slice(start, end));
      start = end + 1;
      const line = this.#line.join('').replace(/\r$/, '');
      this.#line = [];
      if (line) this.#field(line);
      else this.#finish(frames);
    }
    if (start < chunk.length) this.#line.push(chunk.slice(start));
    return frames;
  }

  /** @param {string} line */
  #field(line) {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id') this.#id = value;
  }

  /** @param {Frame[]} frames */
  #finish(frames) {
    if (this.#data.length) frames.push({ id: this.#id, event: this.#event, data: this.#data.join('\n') });
    this.#data = [];
    this.#event = 'message';
    this.#id = null;
  }
}
