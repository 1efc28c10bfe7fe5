// @ts-check
// The search over the titles and headings of the guides. Pure.

/** @typedef {{ title: string, path: string, headings: { title: string, anchor: string }[] }} Guide */
/** @typedef {{ title: string, guide: string, href: string }} Hit The guide of a title is empty. */

/** The ranks of hits, best first. */
const RANKS = [
  (title, words) => title === words,
  (title, words) => title.startsWith(words),
  (title, words) => title.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(words.split(' ')[0])),
];

/**
 * Finds titles and headings that have all words, at any position. The title of its guide may have some of the words
 * of a heading. The best ones stand first: equal ones, then those that begin with the words.
 * @param {Guide[]} guides @param {string} query @param {number} most @returns {Hit[]}
 */
export function search(guides, query, most) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const hits = guides.flatMap((guide) => [
    { title: guide.title, guide: '', href: guide.path },
    ...guide.headings.map(({ title, anchor }) => ({ title, guide: guide.title, href: `${guide.path}#${anchor}` })),
  ]);
  const isHit = ({ title, guide }) => {
    const [own, all] = [title.toLowerCase(), `${title} ${guide}`.toLowerCase()];
    return words.some((word) => own.includes(word)) && words.every((word) => all.includes(word));
  };
  const rankOf = ({ title, guide }) => {
    const rank = RANKS.findIndex((fits) => fits(title.toLowerCase(), words.join(' ')));
    return 2 * (rank < 0 ? RANKS.length : rank) + (guide ? 1 : 0);
  };
  return hits.filter(isHit).sort((a, b) => rankOf(a) - rankOf(b)).slice(0, most);
}
