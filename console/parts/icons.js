// @ts-check
// The icons: one path each, in a square of 16 units.

import { html } from 'htm/preact';

const PATHS = {
  mark: 'M5 3v10M5 7c0 3 6 1 6 5M11 12v1',
  overview: 'M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z',
  inbox: 'M2.5 9 4.5 3h7l2 6v4h-11zM2.5 9h3.2l1 1.8h2.6l1-1.8h3.2',
  tree: 'M5 4.8v6.4M5 8c4 0 6-1 6-3.2M6.5 3.3a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM6.5 12.7a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM12.5 3.3a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z',
  run: 'M5 3.2v9.6L12.5 8z',
  thread: 'M2.5 7.5v-5h5l6 6-5 5zM5.2 5.2h.1',
  agent: 'M8 2v2.5M3.5 4.5h9v7.5h-9zM6 8h.1M10 8h.1M2 8v2M14 8v2',
  webhook: 'M9 3.5a2 2 0 1 1-2.6 1.9M7.6 5.3 5.2 9.5M5 9a2 2 0 1 0 2 2h4.5M11.5 9.2a2 2 0 1 1-.5 3.6M9.3 5l2.1 4',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 13.5 13.5',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  check: 'M3.5 8.5 6.5 11.5 12.5 4.5',
  x: 'M4 4l8 8M12 4l-8 8',
  pen: 'M3 13l.6-2.8 7-7 2.2 2.2-7 7z',
  shield: 'M8 2l5 2v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4z',
  chevron: 'M6 4l4 4-4 4',
  model: 'M8 2.5 9.4 6.6 13.5 8 9.4 9.4 8 13.5 6.6 9.4 2.5 8 6.6 6.6z',
  tool: 'M10.2 2.8a3.2 3.2 0 0 0-3.6 4.4L2.8 11l2.2 2.2 3.8-3.8a3.2 3.2 0 0 0 4.4-3.6L11.3 7.7 9.3 7.3 8.3 5.3z',
  people: 'M6 7.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM2.5 13c0-2.2 1.5-3.7 3.5-3.7S9.5 10.8 9.5 13M10.5 7.5a1.7 1.7 0 1 0 0-3.4M11 9.5c1.6.2 2.5 1.6 2.5 3.5',
  copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7',
  again: 'M12.5 8A4.5 4.5 0 1 1 11 4.6M11.2 2.2v2.6H8.6',
  stop: 'M4.5 4.5h7v7h-7z',
  request: 'M5.5 5 2.5 8l3 3M10.5 5l3 3-3 3',
  out: 'M9 3H3.5v10H9M7 8h6.5M11 5.5 13.5 8 11 10.5',
  split: 'M8 13V8.5M8 8.5 4 4M8 8.5 12 4',
  merge: 'M4.5 3v10M11.5 3c0 4-7 3-7 7',
  diff: 'M5 3.5v5M2.5 6h5M3 12h4M11 3v10',
  next: 'M3 8h10M9.5 4.5 13 8l-3.5 3.5',
};

/** @param {string} name */
export const icon = (name) =>
  html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
